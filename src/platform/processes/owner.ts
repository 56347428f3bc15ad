import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** A directory may be shared with other machines and containers, whose processes cannot be looked up here. */
const MACHINE = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

/** The identifier of this process in names of temporary files. */
export const OWNER = `${MACHINE}-${process.pid}-${startOf(process.pid) ?? 0}`;

/** An owner in the name of a file, for patterns. */
export const OWNER_PATTERN = '[0-9a-f]{8}-\\d+-\\d+';

/**
 * Whether the process that made a temporary file still runs; null for one of another machine. A process id alone does
 * not say: a container gives its processes the same ids at each start.
 */
export function isRunning(owner: string): boolean | null {
  if (owner === OWNER) return true;
  const [machine, pid, start] = owner.split('-');
  if (machine !== MACHINE) return null;
  if (Number(pid) === process.pid) return false;
  const found = startOf(Number(pid));
  if (found !== null) return found === Number(start);
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** When a process began, in the ticks of Linux since the machine's start; null where that cannot be read. */
function startOf(pid: number): number | null {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before it, in brackets, may hold anything.
    return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return null;
  }
}
