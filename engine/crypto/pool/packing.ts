/**
 * Packs lists of byte strings into one buffer, so that a batch is moved to a worker once instead of copied item by
 * item: u32 count · u32 length of each · the bytes.
 */
export function pack(items: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const header = 4 + 4 * items.length;
  const packed = new Uint8Array(items.reduce((sum, item) => sum + item.length, header));
  const view = new DataView(packed.buffer);
  view.setUint32(0, items.length, true);
  let at = header;
  items.forEach((item, i) => {
    view.setUint32(4 + 4 * i, item.length, true);
    packed.set(item, at);
    at += item.length;
  });
  return packed;
}

/** The items of `pack`, as views of `packed`. */
export function unpack(packed: Uint8Array): Uint8Array[] {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const count = view.getUint32(0, true);
  let at = 4 + 4 * count;
  return Array.from({ length: count }, (_, i) => {
    const length = view.getUint32(4 + 4 * i, true);
    at += length;
    return packed.subarray(at - length, at);
  });
}
