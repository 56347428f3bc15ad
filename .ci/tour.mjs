// README's tour, pasted as a whole into a shell in an empty folder (`node .ci/tour.mjs <path of bsvc>`): it prints what
// README shows. Only ports are others.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const README = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8');
const LIMIT_MS = 240_000;
const [, tour] = /<!-- tour -->([\s\S]*?)<!-- \/tour -->/.exec(README);
const blocks = (language) =>
  [...tour.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, text]) => text).join('');

const ports = { 4000: await findFreePort(), 9000: await findFreePort() };
const moved = (text) => text.replace(/\b(4000|9000)\b/g, (port) => ports[port]);
const home = mkdtempSync(join(tmpdir(), 'bsvc-tour-'));
try {
  const folder = join(home, 'empty');
  mkdirSync(folder);
  mkdirSync(join(home, 'bin'));
  symlinkSync(resolve(process.argv[2] ?? 'bin/bsvc.js'), join(home, 'bin', 'bsvc'));
  const env = { ...process.env, PATH: `${join(home, 'bin')}:${process.env.PATH}`, HOME: home };
  const careful = `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; trap 'exit 1' TERM\n${moved(blocks('sh'))}`;
  const words = ['-m', '-o', 'pipefail', '-c', careful];
  const shell = spawn('bash', words, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(shell, 'close');
  let rest = output;
  for (const line of moved(blocks('text')).split('\n').filter(Boolean)) {
    const parts = line.trim().split('…');
    const pattern = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^\\n]*?');
    const found = new RegExp(pattern).exec(rest);
    assert.ok(found, `README shows ${line}, which is not printed:\n${output}`);
    rest = rest.slice(found.index + found[0].length);
  }
  assert.equal(code, 0, output);
  console.log(`Node.js ${process.version}: README’s tour prints what it shows`);
} finally {
  rmSync(home, { recursive: true, force: true });
}

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
