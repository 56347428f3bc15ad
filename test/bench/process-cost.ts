import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

/** What a process has used of the processors so far, as the kernel counts it. Linux only. */
export function cpuSeconds(pid: number): { user: number; system: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return { user: Number(fields[11]) / TICKS_PER_SECOND, system: Number(fields[12]) / TICKS_PER_SECOND };
}

/** The same by the nanoseconds of its threads, for short measurements; without those that have ended. Linux only. */
export function threadMicros(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const spent = threads.map((id) => Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]));
  return spent.reduce((sum, nanos) => sum + nanos, 0) / 1000;
}

/**
 * The memory of a process, 0 when it has ended: all that is resident, or what is its own, without the pages of the
 * mapped data file, which the system takes back as it likes. Linux only.
 */
export function memoryMib(pid: number, kind: 'VmRSS' | 'RssAnon' = 'VmRSS'): number {
  try {
    return Number(new RegExp(`${kind}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
  } catch {
    return 0;
  }
}

/** What a process holds of memory, shared pages by their share; and what is its own alone. Linux only. */
export function heldMib(pid: number): { pss: number; own: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)![1]) / 1024;
  return { pss: mib('Pss'), own: mib('Pss_Anon') };
}
