/** Other keys of the same name, so that nobody takes one for another. */
import { KeyPage } from "../../../../engine/contract/identity/keys.js";
import type { KeyDetail } from "../../../client/index.js";
import { Card, KeyList } from "../../components/index.js";
import { foldedName } from "../../state/names.js";
import { http } from "../../state/service.js";
import { useTask } from "../../state/task.js";

const ASKED = 100;
const SHOWN = 4;

const longestWord = (name: string): string =>
  foldedName(name)
    .split(" ")
    .reduce((longest, word) => (word.length > longest.length ? word : longest));

/** Renders nothing if no other key has the name. */
export function Namesakes({ shown }: { readonly shown: KeyDetail }) {
  const { value } = useTask(async () => {
    // Of names that look alike, white space may differ.
    const query = { pseudonym: longestWord(shown.pseudonym), page: 1, per_page: ASKED };
    const { keys } = await http.get(KeyPage, "/keys/search", query);
    const name = foldedName(shown.pseudonym);
    return keys.filter(
      ({ fingerprint, pseudonym }) => fingerprint !== shown.fingerprint && foldedName(pseudonym) === name,
    );
  }, [shown]);
  if (!value?.length) return null;
  return (
    <Card title="Other keys have this name" aside={`${value.length}`} class="namesakes">
      <p class="note">Only the fingerprint tells which key somebody means. This key and others of its name:</p>
      <KeyList keys={[shown, ...value.slice(0, SHOWN - 1)]} />
    </Card>
  );
}
