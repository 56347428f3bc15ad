const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Bytes of a text such as `10 GB` or `1024`; NaN where it is none. A unit is 1,024 of the one before. */
export function readSize(text: string): number {
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?$/i.exec(text.trim()) ?? [];
  const power = unit === '' ? 0 : 'KMGT'.indexOf(unit.toUpperCase()) + 1;
  return digits === '' ? Number.NaN : Math.round(Number(digits) * 1024 ** power);
}

/** The bytes in their largest unit that says them exactly. */
export function writeSize(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 1024 && size % 1024 === 0 && unit < UNITS.length - 1) {
    size /= 1024;
    unit++;
  }
  return unit === 0 ? String(size) : `${size} ${UNITS[unit]!}`;
}
