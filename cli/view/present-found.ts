/**
 * The text of a command about a thing that `--if-not-exists` found: it stays as it is, and these parts of it are not as
 * asked for. `change` is a sentence that says how to change them.
 */
export function presentFound(thing: string, unmet: readonly string[] = [], change = ''): string {
  const said = `${thing} was there already; nothing was changed.`;
  return unmet.length === 0 ? said : `${said}\nNot as asked for: ${unmet.join(', ')}. ${change}`;
}
