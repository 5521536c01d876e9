/** Saves files that the page makes. */

/** Makes the browser save `value` as a JSON file with this name. */
export function saveJson(name: string, value: unknown): void {
  saveFile(name, `${JSON.stringify(value, null, 2)}\n`, "application/json");
}

export function saveFile(name: string, content: string, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // By then, every browser has read the content for the download.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
