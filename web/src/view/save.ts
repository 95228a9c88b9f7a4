/** Offers text as a file. It comes from the page's own memory: nothing is asked of any server. */
export function saveText(text: string, name: string): void {
  saveBlob(new Blob([text], { type: "text/plain;charset=utf-8" }), name);
}

export function saveBlob(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
