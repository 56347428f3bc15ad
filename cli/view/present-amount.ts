/** `1 document`, `2 documents`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** Bytes for a person: `512 bytes`, `1.5 MB`, in the units of the settings (1 KB = 1024 bytes). */
export function presentBytes(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  return `${Math.round((bytes / 1024 ** power) * 10) / 10} ${UNITS[power]}`;
}
