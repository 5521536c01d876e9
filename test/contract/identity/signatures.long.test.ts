/**
 * Every signature of the tables, judged by docs/check-receipt.sh, which starts a shell, openssl and python3 for each.
 */
import { afterAll, expect, test } from "vitest";
import { scratchFolder } from "../../service.js";
import { cases, checkReceipt, writeReceipts } from "./receiptfiles.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

test("docs/check-receipt.sh agrees with all other verifiers about every signature", async () => {
  const { operatorPem, fileOf } = writeReceipts(folder.path);
  const waiting = [...cases];
  const work = async () => {
    for (let one = waiting.pop(); one; one = waiting.pop())
      expect(await checkReceipt(fileOf(one), operatorPem), one.name).toBe(one.says === "valid" ? "held" : "refused");
  };
  await Promise.all([work(), work()]);
});
