import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const ENVIRONMENT = join(import.meta.dirname, '../../storage/file/environment.ts');

/**
 * A process that has begun to read the data file and stays in the middle of it, as one does that is stopped or killed
 * there.
 */
export async function holdSnapshot(dataDir: string): Promise<ChildProcess & { pid: number }> {
  const script = `
    import { openEnvironment } from ${JSON.stringify(ENVIRONMENT)};
    const { store } = openEnvironment(${JSON.stringify(dataDir)}, 'relaxed');
    globalThis.held = store.useReadTransaction();
    console.log('reading');
    setInterval(() => undefined, 60_000);
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the reader ended before it could read')));
  await Promise.race([once(child.stdout, 'data'), ended]);
  ended.catch(() => undefined);
  return child as typeof child & { pid: number };
}

/** Kills it without a chance to leave anything in order, also when it is stopped. */
export async function killHard(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
