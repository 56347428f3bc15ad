import type { App } from '../../app.js';
import type { ChangeLog, Logged, LogPosition } from './change-log.js';
import { openStoredLog } from './stored-log.js';
import type { Database } from '../../platform/database/database.js';
import { documentsName } from '../collections/collection.js';
import { documentIndexes } from '../collections/indexes/document-indexes.js';
import { logSettings } from '../collections/rules/log-settings.js';

/** Each is held in memory with an earlier document. */
const MAX_WATCHED_ENTRIES = 2_000;

const DONE = { insert: 'created', update: 'changed', remove: 'removed' } as const;

/** The embedded engine's log, which holds every change from when it was first asked for. */
function openEngineLog(app: Pick<App, 'db'>, logs: NonNullable<Database['changeLogs']>, collection: Logged): ChangeLog {
  const name = documentsName(collection);
  const settings = logSettings(collection);
  return {
    async begin(): Promise<LogPosition> {
      let begun = await logs.begin(name, settings);
      if (!begun) {
        // `users` is stored with its first document.
        await app.db.createIndexes(name, documentIndexes(collection));
        begun = await logs.begin(name, settings);
      }
      if (!begun) throw new Error(`no stored collection ${name}`);
      return { epoch: String(begun.epoch), seq: begun.seq };
    },
    position() {
      const end = logs.position(name);
      return end && { epoch: String(end.epoch), seq: end.seq };
    },
    async read({ after, filter, readable, conditions, limit, maxBytes }) {
      const found = await logs.read(name, {
        epoch: Number(after.epoch),
        after: after.seq,
        filter,
        earlierAccess: { $and: [{ isDeleted: false }, ...(readable ? [readable] : [])] },
        earlierConditions: conditions.length === 0 ? {} : { $and: conditions },
        limit,
        maxBytes,
      });
      if (!found) return null;
      const changes = found.changes.map(({ id, at, document }) => ({ id: String(id), at: new Date(at), document }));
      return { ...found, changes };
    },
    async watch({ after, visible, limit, maxBytes }) {
      const found = await logs.read(name, {
        epoch: Number(after.epoch),
        after: after.seq,
        filter: visible,
        earlierAccess: {},
        earlierConditions: {},
        limit,
        maxBytes,
        earlierOf: MAX_WATCHED_ENTRIES,
      });
      if (!found) return null;
      const changes = found.changes.map(({ id, at, document, earlier = [] }) => {
        return { id: String(id), at: new Date(at), document, earlier, owners: [] };
      });
      return { ...found, changes };
    },
    async history(search) {
      const found = await logs.history(name, search);
      if (!found) return null;
      const changes = found.changes.map(({ at, operation, earlier, isPartial }) => ({
        at: new Date(at),
        change: DONE[operation],
        earlier: operation === 'insert' ? null : { bytes: earlier, isPartial },
      }));
      return { changes, next: found.next };
    },
    end: () => logs.end(name),
    size() {
      if (!logs.position(name)) return Promise.resolve(null);
      const oldest = logs.oldest(name);
      return Promise.resolve({ bytes: logs.bytes(name), since: oldest === null ? null : new Date(oldest) });
    },
    async trim(since, maxBytes) {
      await logs.trim(name, { since: since.getTime(), maxBytes });
      await logs.erase(name);
    },
  };
}

/** The log of a collection, wherever its documents are. */
export function openChangeLog(app: App, collection: Logged): ChangeLog {
  return app.db.changeLogs ? openEngineLog(app, app.db.changeLogs, collection) : openStoredLog(app, collection);
}
