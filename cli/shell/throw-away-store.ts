import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { App } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';

/** Runs `work` on a new, empty store of the embedded engine, which is removed afterwards, whatever happens. */
export async function withThrowAwayStore<T>(work: (app: App) => Promise<T>): Promise<T> {
  const [{ openApp }, { openLogger }, { migrate }] = await Promise.all([
    import('../../src/app.js'),
    import('../../src/platform/observe/logger.js'),
    import('../../src/migrations/migrate.js'),
  ]);
  const dir = await mkdtemp(join(tmpdir(), 'bsvc-rules-'));
  try {
    const values = { BSVC_DATA_DIR: dir, BSVC_DURABILITY: 'relaxed', BSVC_READER_THREADS: 'off' };
    const { config } = loadConfig([{ source: 'a throw-away store', values }]);
    const app = await openApp(config, openLogger({ level: 'silent', format: 'json' }, { write: () => undefined }));
    try {
      await migrate(app.db);
      return await work(app);
    } finally {
      await app.close();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
