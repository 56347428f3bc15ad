import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runBinary, runOrThrow, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

// Each example as its reader tries it: applied, its rules tested, and walked through against a server.
const EXAMPLES = join(import.meta.dirname, '../../templates/examples');
const NAMES = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
/** What own code of the booking example shares with its payment service. */
const SHARED = { PAYMENT_SECRET: 'shared with the payment service' };
const keys = new Map<string, { publishable: string; secret: string }>();

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_DURABILITY: 'relaxed',
  BSVC_PORT: '0',
  BSVC_HOST: '127.0.0.1',
  ...SHARED,
};
for (const name of NAMES) {
  const applied = await runOrThrow(['apply', '-f', join(EXAMPLES, name, 'bsvc.yaml'), '--json'], env);
  const { changes } = JSON.parse(applied) as { changes: { keys?: { publishable: string; secret: string } }[] };
  keys.set(name, changes.find((change) => change.keys)!.keys!);
}
const service = await startService(['serve'], env);
afterAll(async () => {
  await service?.stop();
});

it('have a page that names each of them, and what is needed to try one', () => {
  const page = readFileSync(join(EXAMPLES, 'README.md'), 'utf8');
  expect([...page.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name).sort()).toEqual([...NAMES].sort());
  for (const word of ['apply -f $EXAMPLE/bsvc.yaml', 'rules test $EXAMPLE/rules.test.yaml', 'BSVC_URL', 'walk.mjs']) {
    expect(page).toContain(word);
  }
});

describe.each(NAMES)('the example %s', (name) => {
  it('changes nothing when it is applied again, and its rules hold', async () => {
    const again = await runOrThrow(['apply', '-f', join(EXAMPLES, name, 'bsvc.yaml')], env);
    expect(again).toContain('Nothing to change');
    const { code, stdout, stderr } = await runBinary(['rules', 'test', join(EXAMPLES, name, 'rules.test.yaml')]);
    expect([code, stderr], stdout).toEqual([0, '']);
  });

  it('does what its users want, without a server of its own', async () => {
    const { publishable, secret } = keys.get(name)!;
    const walk = spawn(process.execPath, [join(EXAMPLES, name, 'walk.mjs')], {
      env: { BSVC_URL: service.ready.url, PUBLISHABLE_KEY: publishable, SECRET_KEY: secret, ...SHARED },
    });
    let told = '';
    for (const stream of [walk.stdout, walk.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (told += text));
    }
    const [code] = (await once(walk, 'close')) as [number | null];
    expect([code, told.trim()]).toEqual([0, 'walked']);
  });
});
