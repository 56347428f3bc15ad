import { symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readExamples, readGuides } from '../helpers/guide-examples.js';
import { listen } from '../helpers/listen.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

/** An SDK in a few lines, with a copy of the API of its own, as one that is installed elsewhere has. */
const SDK = `
import api from '${pathToFileURL(createRequire(import.meta.url).resolve('@opentelemetry/api')).href}';
const held = [];
api.trace.setGlobalTracerProvider({
  getTracer: () => ({
    startSpan(name) {
      const span = {
        spanContext: () => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }),
        setAttribute: () => span,
        setStatus: () => span,
        updateName: (text) => { name = text; return span; },
        end: () => { held.push(name); },
      };
      return span;
    },
  }),
  async forceFlush() {
    for (const name of held) process.stderr.write('span ' + name + '\\n');
  },
});
`;

let dir: TempDir;
beforeEach(async () => {
  dir = await openTempDir();
});
afterEach(() => dir.remove());

describe('NODE_OPTIONS=--import ./telemetry.mjs', () => {
  it.each(['1', '2'])('makes bsvc serve tell its spans, the last ones when it stops (processes: %s)', async (count) => {
    const file = join(dir.path, 'telemetry.mjs');
    await writeFile(file, SDK);
    const service = await startService(['serve', '--port', '0', '--processes', count], {
      BSVC_DATA_DIR: join(dir.path, 'data'),
      BSVC_LOG_LEVEL: 'error',
      NODE_OPTIONS: `--import ${pathToFileURL(file).href}`,
    });
    expect((await fetch(`${service.ready.url}/api/health/live`)).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(service.stderr()).toContain('span GET /api/health/live\n');
  });
});

describe('the recipe of the guide', () => {
  it('exports spans by OTLP as it is pasted', async () => {
    const received: string[] = [];
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        received.push(`${request.url} ${Buffer.concat(chunks).toString('latin1')}`);
        response.end();
      });
    });
    const { url, close } = await listen(receiver);
    try {
      const [recipe] = readExamples(readGuides().get('monitoring.md')!).filter(({ text }) => text.includes('NodeSDK'));
      // What `npm install @opentelemetry/sdk-node` makes beside the file.
      await symlink(join(import.meta.dirname, '../../node_modules'), join(dir.path, 'node_modules'));
      await writeFile(join(dir.path, 'telemetry.mjs'), recipe!.text);
      const service = await startService(['serve', '--port', '0'], {
        BSVC_DATA_DIR: join(dir.path, 'data'),
        BSVC_LOG_LEVEL: 'error',
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        NODE_OPTIONS: `--import ${pathToFileURL(join(dir.path, 'telemetry.mjs')).href}`,
      });
      expect((await fetch(`${service.ready.url}/api/health/live`)).status).toBe(200);
      expect(await service.stop()).toBe(0);
      const traces = received.filter((text) => text.startsWith('/v1/traces')).join('');
      expect(traces).toContain('GET /api/health/live');
    } finally {
      await close();
    }
  });
});
