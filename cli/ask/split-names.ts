/** Names written with commas between them, as `board,user`. */
export function splitNames(text: string): string[] {
  return text.split(',').map((name) => name.trim());
}
