import type { Database } from '../platform/database/database.js';

/** One step; `up` may be run again after a crash in its middle, so it must be harmless to repeat. */
export interface Migration {
  id: string;
  up(db: Database): Promise<void>;
}
