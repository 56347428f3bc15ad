import type { App } from '../../src/app.js';
import { loadConfig, type Config } from '../../src/config/config.js';
import { STORE_SETTINGS } from '../../src/config/settings.js';
import { inWorkFolder } from '../../src/platform/processes/work-folder.js';
import type { Context } from './context.js';

/** Runs `work` on a new, empty store under the settings of the command, and removes it afterwards, whatever happens. */
export async function withThrowAwayStore<T>(context: Context, work: (app: App) => Promise<T>): Promise<T> {
  const [{ openApp }, { openLogger }, { migrate }] = await Promise.all([
    import('../../src/app.js'),
    import('../../src/platform/observe/logger.js'),
    import('../../src/migrations/migrate.js'),
  ]);
  return inWorkFolder(async (dir) => {
    const values = { BSVC_DATA_DIR: dir, BSVC_DURABILITY: 'relaxed' };
    const { config: own } = loadConfig([{ source: 'a temporary database', values }]);
    const storage = Object.fromEntries(Object.keys(STORE_SETTINGS).map((name) => [name, own[name as keyof Config]]));
    const config: Config = { ...context.settings().config, ...storage, readerThreads: 0 };
    const app = await openApp(config, openLogger({ level: 'silent', format: 'json' }, { write: () => undefined }));
    try {
      await migrate(app.db);
      return await work(app);
    } finally {
      await app.close();
    }
  });
}
