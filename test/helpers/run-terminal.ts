import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { BINARY } from './run-binary.js';

export interface TerminalSession {
  /** Resolves when the text has been shown after what was waited for before; what it looked like is without colours. */
  shows(text: string): Promise<void>;
  /** Types the text; `\r` is the return key, `\u0003` Ctrl-C, `\u001b[B` the arrow down. */
  type(text: string): void;
  /** Closes the terminal, as when its window is closed; what the command does about it is nobody's to see. */
  close(): void;
  /** Waits for the end; `screen` is without control sequences, `raw` with them. */
  end(): Promise<{ code: number | null; screen: string; raw: string }>;
}

const PATIENCE_MS = 45_000;

/**
 * The real binary on a pseudo-terminal (util-linux's `script`), so that prompts are asked and answered as by a person.
 * With `stdout` only stdin and stderr are the terminal: stdout is a pipe whose other end writes that file. In the
 * `background` a shell has started it with `&`.
 */
export function openTerminal(
  argv: string[],
  env: Record<string, string>,
  { stdout, columns = 120, background }: { stdout?: string; columns?: number; background?: true } = {},
): TerminalSession {
  const command = [process.execPath, BINARY, ...argv].map(quote).join(' ');
  const code = stdout && quote(`${stdout}.code`);
  // exec: the exit code and a Ctrl-C are the command's own, not a shell's.
  const line = stdout
    ? `{ ${command}; echo $? >${code}; } | cat >${quote(stdout)}; exit $(cat ${code})`
    : background
      ? `exec bash --norc -ic ${quote(`${command} & wait`)}`
      : `exec ${command}`;
  const child = spawn('script', ['-qefc', `stty cols ${columns} rows ${columns && 40}; ${line}`, '/dev/null'], {
    env: { PATH: process.env.PATH!, TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  let seen = 0;
  // Not `exit`, after which something may still arrive.
  let isOver = false;
  const closed = once(child, 'close').finally(() => (isOver = true)) as Promise<[number | null]>;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  const plain = (): string => screen.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '');
  return {
    async shows(text) {
      const deadline = Date.now() + PATIENCE_MS;
      for (;;) {
        const at = plain().indexOf(text, seen);
        if (at !== -1) {
          seen = at + text.length;
          return;
        }
        if (Date.now() > deadline || isOver) {
          throw new Error(`the terminal never showed "${text}" but:\n${plain()}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    type: (text) => void child.stdin.write(text),
    // The terminal is held by this process alone; its end reaches what runs there as it does from the system.
    close: () => void child.kill('SIGKILL'),
    async end() {
      const [code] = await closed;
      return { code, screen: plain(), raw: screen };
    },
  };
}

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;
