import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runBinary } from '../run-binary.js';
import { FIRST_PASSWORD } from './user-clients.js';
import type { Random } from '../random.js';

export interface CommandBooks {
  /** Commands by name: those that ended well, those that were killed. */
  ended: Map<string, number>;
  killed: Map<string, number>;
  /** Numbers of the imports that ended well: each stored IMPORTED documents. */
  imports: number[];
  /** Addresses of users that a command has made. */
  users: string[];
  backups: string[];
  failures: string[];
}

export const openCommandBooks = (): CommandBooks => ({
  ended: new Map(),
  killed: new Map(),
  imports: [],
  users: [],
  backups: [],
  failures: [],
});

export const IMPORTED = 300;
const LATEST_KILL_MS = 1_500;

/** Runs one random command beside the service; most are killed in the middle, unless they are faster. */
export async function runAndKillCommand(
  place: { env: Record<string, string>; dir: string; project: string },
  random: Random,
  books: CommandBooks,
): Promise<void> {
  const number = [...books.ended.values(), ...books.killed.values()].reduce((sum, count) => sum + count, 0);
  const file = join(place.dir, `import-${number}.ndjson`);
  const email = `command${number}@example.test`;
  const backup = join(place.dir, `soak-${number}.backup`);
  const commands: { name: string; words: string[]; env?: Record<string, string>; noted: () => void }[] = [
    { name: 'doctor --fix', words: ['doctor', '--fix'], noted: () => undefined },
    { name: 'data import', words: ['data', 'import', 'imports', file], noted: () => books.imports.push(number) },
    {
      name: 'user create',
      words: ['user', 'create', '--email', email, '--password-env', 'SOAK_PASSWORD', '--verified'],
      env: { SOAK_PASSWORD: FIRST_PASSWORD },
      noted: () => books.users.push(email),
    },
    { name: 'backup', words: ['backup', '--out', backup], noted: () => books.backups.push(backup) },
    { name: 'collection edit', words: ['collection', 'edit', 'notes', '--index', 'rev'], noted: () => undefined },
  ];
  const { name, words, env, noted } = random.pick(commands);
  if (name === 'data import') {
    const lines = Array.from({ length: IMPORTED }, (_, n) => `${JSON.stringify({ number, n })}\n`);
    await writeFile(file, lines.join(''));
  }
  const isKilled = random.chance(0.6);
  let timer: NodeJS.Timeout | undefined;
  const outcome = await runBinary(words, {
    cwd: place.dir,
    env: { ...place.env, ...env, BSVC_PROJECT: place.project },
    onStart: (child) => {
      if (isKilled) timer = setTimeout(() => child.kill('SIGKILL'), 100 + random.below(LATEST_KILL_MS));
    },
  });
  clearTimeout(timer);
  const counts = outcome.code === null ? books.killed : books.ended;
  counts.set(name, (counts.get(name) ?? 0) + 1);
  if (outcome.code === 0) noted();
  // Exit 3: the database was away just then. Of the doctor only the recount counts.
  else if (outcome.code !== null && outcome.code !== 3 && !/Unhealthy: (?!.*storage)/.test(outcome.stderr))
    books.failures.push(`${name}: exit ${outcome.code} ${outcome.stderr.slice(0, 300)}`);
}
