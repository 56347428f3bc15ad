import type { App } from '../../app.js';
import type { ChangeLog, Logged } from './change-log.js';
import { openEngineLog } from './engine-log.js';
import { openOutboxLog } from './outbox-log.js';

/** The log of a collection, wherever its documents are. */
export function openChangeLog(app: App, collection: Logged): ChangeLog {
  return app.db.changeLogs ? openEngineLog(app, app.db.changeLogs, collection) : openOutboxLog(app, collection);
}
