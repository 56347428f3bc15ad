import { stat } from 'node:fs/promises';
import type { App } from '../../src/app.js';
import { openDisplayNames } from '../../src/features/collections/display-names.js';
import { verifyUnopened } from '../../src/platform/database/database.js';
import { countOf } from '../view/present-amount.js';
import { failed, passed, type CheckResult } from './check.js';
import type { Context } from '../shell/context.js';
import { Interrupted, presentFailure } from '../view/exit.js';

export const CONTENT = 'content';
const RESTORE =
  'Stop what serves it, then "bsvc doctor --repair" saves what is whole and says what is not; "bsvc restore" into a new data directory (--data-dir) brings a backup back.';

/** Reads the whole embedded store, as of one moment, and names what is damaged: `bsvc doctor --deep`. */
export async function checkContent(context: Context): Promise<CheckResult> {
  let config;
  try {
    ({ config } = context.settings());
  } catch (error) {
    return failed(CONTENT, presentFailure(error).message, 'Correct them; "bsvc settings" lists all.');
  }
  if (config.mongodbUri) return passed(CONTENT, 'MongoDB checks its own: the command "validate" of mongosh');
  if (!(await stat(config.dataDir).catch(() => null))) return passed(CONTENT, 'nothing is stored yet');
  const progress = await context.out.progress('Reading the store');
  let lostPages = 0;
  const options = {
    signal: context.stop,
    onLostPages: (pages: number) => {
      lostPages = pages;
    },
    onProgress: (done: number, all: number) => {
      progress.update(`Reading the store: ${done} of ${all} pages`);
    },
  };
  try {
    const app = await openApp(context);
    const problems = await (app ? app.db.verify(options) : verifyUnopened(config, options));
    if (problems.length === 0) {
      const whole = 'every page, document, index entry and count is as it was stored';
      return passed(CONTENT, lostPages === 0 ? whole : `${whole}; ${noteLost(lostPages)}`);
    }
    return failed(CONTENT, (await openDisplayNames(app))(problems.join('\n')), RESTORE);
  } catch (error) {
    if (context.stop.aborted) throw new Interrupted();
    return failed(CONTENT, presentFailure(error).message, RESTORE);
  } finally {
    progress.stop();
  }
}

/** LMDB loses a page now and then; a backup holds documents, not pages. */
function noteLost(pages: number): string {
  return `${countOf(pages, 'page')} of the file can no longer be used, which is harmless: a restored backup has none`;
}

/** Null for a store that cannot be opened: then its file is read as it is. */
function openApp(context: Context): Promise<App | null> {
  return context.app('diagnosis').catch(() => null);
}
