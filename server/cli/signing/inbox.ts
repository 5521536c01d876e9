/** `cairnlog inbox`: notifications about requests to a key and by it. */
import { type Action, listed, runAction } from "../actions.js";
import { CONNECTION_HELP, CONNECTION_OPTIONS, readNumber } from "../connection.js";
import { none, only, type Subcommand } from "../usage.js";

const OPTIONS = { ...CONNECTION_OPTIONS, unread: { type: "boolean", default: false } } as const;

const ACTIONS: Readonly<Record<string, Action<typeof OPTIONS>>> = {
  list: (names, { unread }) => {
    none(names);
    return (client) =>
      listed(client.inbox.list(unread ? { unread } : {}), ({ id, created_at, kind, request_id, read }) =>
        [id, created_at, kind, request_id, ...(read ? [] : ["unread"])].join(" "),
      );
  },
  read: (names) => {
    const id = readNumber(only(names, "ID"), "ID");
    return async (client) => {
      const answer = await client.inbox.markRead(id);
      return { answer, text: `${answer.id} is read` };
    };
  },
};

export const inbox: Subcommand = {
  help: `cairnlog inbox list --server URL [--unread] [--key KEY.pem] [options]
cairnlog inbox read ID --server URL [--key KEY.pem] [options]

list tells the notifications of KEY or of the session (cairnlog login), newest first; read marks one as read.
cairnlog respond answers a request.

Options:
  --key KEY.pem            your private key; it stays here
  --unread                 list: those only that are not marked as read
${CONNECTION_HELP}

Example:
  cairnlog inbox list --unread --key me.pem --server http://127.0.0.1:8080`,
  options: OPTIONS,
  actions: Object.keys(ACTIONS),
  run: (argv) => runAction(ACTIONS, OPTIONS, argv),
};
