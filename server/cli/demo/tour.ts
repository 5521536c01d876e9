/** The tour of the demonstration, as text: what to look at, and commands to run in another terminal. */

interface TourPlaces {
  /** Address of the service. */
  readonly url: string;
  /** Address of the copy of its log in which a name was changed. */
  readonly rewrittenUrl: string;
  /** Folder of keys, documents and receipts. */
  readonly folder: string;
  /** How to run the command there. */
  readonly command: string;
  readonly entries: number;
  /** Fingerprint of the key that endorses others. */
  readonly endorser: string;
}

/** Every line that begins with two spaces and `cairnlog` is a command; a test runs them all, in order. */
export const tour = ({ url, rewrittenUrl, folder, command, entries, endorser }: TourPlaces): string => `
ready    ${url}/ (a demonstration: ${entries} entries by five people; Ctrl+C ends it and removes it)

1. Look. Open ${url}/ : your browser verifies what it shows. ${url}/docs describes the API.

   In a second terminal:

  cd ${folder}
  ${command === "cairnlog" ? "# keys, documents and receipts are here" : `alias cairnlog='${command.replaceAll("'", "'\\''")}'`}
  export CAIRNLOG_SERVER=${url}

2. Check a receipt, offline. Then one of a copy of the file in which a word was changed:

  cairnlog verify notes.txt --operator-key operator.pub.pem
  cairnlog verify changed/notes.txt --operator-key operator.pub.pem     # NOT verified

3. See who is there, whom Ada's key endorses, and read a claim that only Mary's key opens:

  cairnlog keys list
  cairnlog trust graph ${endorser}
  cairnlog claim decrypt claim.json --key mary.pem

4. Catch a lie. At ${rewrittenUrl}/ the same log is served after somebody changed a name in its file:

  cairnlog monitor ${url} --state watch --once
  cairnlog monitor ${rewrittenUrl} --state watch --once     # ALARM

   Open ${rewrittenUrl}/ as well: the page says it, too.

5. Sign something yourself:

  cairnlog keygen --out me.pem
  cairnlog attest compiler.txt --key me.pem --pseudonym "Me" --type peer_review
`;
