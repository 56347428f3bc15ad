import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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
