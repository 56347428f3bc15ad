import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../collection.js';
import { HIDDEN_FIELD } from '../fields/field.js';
import { FOLDED } from '../fields/nocase.js';
import { parsedRules, ruledPaths } from './collection-rules.js';
import { documentPaths, ID_PATH } from './rule.js';

/**
 * What the embedded engine's log of a collection keeps of earlier documents: before all the fields that say who may
 * read them, which deletion events need, and those that membership sets need. Of the service's
 * notes what filters compare.
 */
export function logSettings(collection: Pick<Collection, 'rls' | 'rules' | 'fields' | 'namedBy'>): {
  first: string[];
  omit: string[];
  except: string;
} {
  const { rls } = collection;
  const paths = [...(rls ? [rls.ownerField] : []), ...ruledPaths(collection)];
  return {
    first: ['isDeleted', ...new Set(paths.map((path) => path.split('.')[0]!))],
    omit: [HIDDEN_FIELD],
    except: FOLDED.slice(HIDDEN_FIELD.length + 1),
  };
}

/**
 * The fields whose values before a write say who was shown the document by the rule `read`; none where it does not look
 * into documents. On a MongoDB each event keeps them, as there the log itself knows nothing of earlier documents.
 */
export function readingFields({ rules }: Pick<Collection, 'rules'>): string[] {
  if (!rules) return [];
  const paths = documentPaths([parsedRules(rules).read]);
  if (paths.length === 0) return [];
  const named = paths.filter((path) => path !== ID_PATH).map((path) => path.split('.')[0]!);
  return [...new Set(['isDeleted', ...named])];
}

/** Begins the embedded engine's log of a collection, or gives the one that it has these settings. */
export async function beginEngineLog(app: Pick<App, 'db'>, collection: Collection): Promise<void> {
  await app.db.changeLogs?.begin(documentsName(collection), logSettings(collection));
}
