const MAX_COMPARED = 60;

/** The known word that differs least from a mistyped one; null when none is near enough to be meant. */
export function findNearest(word: string, known: readonly string[]): string | null {
  if (word.length > MAX_COMPARED) return null;
  const allowed = Math.max(1, Math.floor(word.length / 3));
  let best: { name: string; distance: number } | null = null;
  for (const name of known) {
    if (name.length > MAX_COMPARED || Math.abs(name.length - word.length) > allowed) continue;
    const distance = editDistance(word.toLowerCase(), name.toLowerCase());
    if (distance <= allowed && (!best || distance < best.distance)) best = { name, distance };
  }
  return best?.name ?? null;
}

/** Insertions, deletions, replacements and swaps of neighbours that make one word of the other. */
function editDistance(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}
