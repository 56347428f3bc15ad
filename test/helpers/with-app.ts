import { openApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config/config.js';
import { openLogger } from '../../src/platform/observe/logger.js';

/** The application in this process, closed when the work is done; its clock may be set ahead. */
export async function withApp<T>(env: Record<string, string>, work: (app: App) => Promise<T>, aheadMs = 0): Promise<T> {
  const { config } = loadConfig([{ source: 'test', values: env }]);
  const app = await openApp(config, openLogger({ level: 'silent', format: 'json' }), {
    now: () => Date.now() + aheadMs,
  });
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}
