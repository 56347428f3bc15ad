const BAR_CELLS = 20;

/** A bar with percent and time left, for work of which `share` (0 to 1) is done after `elapsedMs`. */
export function presentProgress(share: number, elapsedMs: number): string {
  const done = Math.min(1, Math.max(0, share));
  const cells = Math.round(done * BAR_CELLS);
  const bar = '█'.repeat(cells) + '░'.repeat(BAR_CELLS - cells);
  const percent = `${Math.floor(done * 100)} %`.padStart(5);
  // The first moments say nothing of the rest.
  const left = done >= 0.02 && elapsedMs >= 1000 ? `, ${presentLeft((elapsedMs * (1 - done)) / done)} left` : '';
  return `${bar} ${percent}${left}`;
}

function presentLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
