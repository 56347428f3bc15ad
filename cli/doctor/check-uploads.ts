import { checkFiles } from '../../src/features/files/check-files.js';
import { failed, passed, type CheckResult } from './check.js';
import type { Context } from '../shell/context.js';
import { Interrupted, presentFailure } from '../view/exit.js';
import { countOf } from '../view/present.js';

export const UPLOADED = 'files';
/** Files that are named; --json of a backup names more. */
const MOST_NAMED = 20;
const RESTORE =
  'Copy them back from a backup ("bsvc restore" into a new data directory, then its folder "files"), or delete them.';

/** Reads all uploaded files and names those that are damaged or missing: a part of `bsvc doctor --deep`. */
export async function checkUploads(context: Context): Promise<CheckResult> {
  const app = await context.app('diagnosis').catch(() => null);
  if (!app) return failed(UPLOADED, 'not checked: the store cannot be opened', 'See the lines above.');
  const progress = await context.out.progress('Reading uploaded files');
  try {
    const found = await checkFiles(app, {
      signal: context.stop,
      onProgress: (checked) => progress.update(`Reading uploaded files: ${checked}`),
    });
    const skipped = found.unreachable > 0 ? `; ${countOf(found.unreachable, 'file')} in buckets not reached` : '';
    if (found.damagedFiles === 0) return passed(UPLOADED, `${countOf(found.checked, 'file')} as stored${skipped}`);
    const rest = found.damagedFiles - MOST_NAMED;
    const lines = [...found.damage.slice(0, MOST_NAMED), ...(rest > 0 ? [`… and ${rest} more.`] : [])];
    return failed(UPLOADED, `${lines.join('\n')}${skipped}`, RESTORE);
  } catch (error) {
    if (context.stop.aborted) throw new Interrupted();
    return failed(UPLOADED, presentFailure(error).message, 'See "content" above.');
  } finally {
    progress.stop();
  }
}
