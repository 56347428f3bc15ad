import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BINARY } from './run-binary.js';

export interface ShellOutcome {
  /** null when a signal ended it. */
  code: number | null;
  /** Standard output and standard error as they came. */
  output: string;
}

/**
 * Runs bash in `dir`, with `bsvc` on the PATH as ./install.sh would have linked it. It is ended after `timeout`
 * milliseconds.
 */
export async function runShell(
  dir: string,
  words: string[],
  env: Record<string, string>,
  timeout: number,
): Promise<ShellOutcome> {
  const bin = join(dir, 'bin');
  if (!existsSync(bin)) {
    mkdirSync(bin);
    symlinkSync(BINARY, join(bin, 'bsvc'));
  }
  const shell = spawn('bash', words, {
    cwd: dir,
    env: { PATH: `${bin}:${process.env.PATH}`, HOME: dir, TMPDIR: tmpdir(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
  });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const [code] = (await once(shell, 'close')) as [number | null];
  return { code, output };
}
