import type { App } from '../../../app.js';
import type { Exists } from '../../../platform/database/database.js';
import { takeTurns } from '../../../turns.js';
import { findSight, type Referrer } from '../../access/access-rules.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { referencesOf } from '../../collections/references/reference.js';
import { AskOutside } from './ask-outside.js';
import type { StoredDocument } from './document.js';
import type { RecordWrite } from './record-update.js';
import {
  findTarget,
  MAX_CHECKS,
  referredChanging,
  tooManyReferences,
  type ReferenceCheck,
} from './reference-checks.js';

/** The checked references of a document, for a decision inside of its write. */
export interface NewReferences {
  /** 400 REFERENCE_MISSING for what is referred to from now on and is not there, or not for the referrer to read. */
  require(stored: StoredDocument, next: StoredDocument, exists: Exists): void;
}

/**
 * Opens the references of a change of the `named` fields; null where the collection has none. What a document refers to
 * may stay, or go.
 */
export async function openReferences(
  app: App,
  { collection, referrer, named }: { collection: Collection; referrer: Referrer | null; named: ReadonlySet<string> },
  earlier: readonly RecordWrite[],
): Promise<NewReferences | null> {
  const references = referencesOf(collection);
  if (references.length === 0) return null;
  // A guess at what is not shown is a new reference.
  const sight = referrer && (await findSight(app, collection, referrer.caller));
  const targets = new Map<string, ReferenceCheck>();
  const turn = takeTurns();
  return {
    require(stored, next, exists) {
      const wanted = new Map<string, { field: string; to: string; id: string }>();
      for (const { field, to } of references) {
        const isGuess = sight?.unnamed.has(field) && named.has(field);
        if (stored[field] === next[field] && !isGuess) continue;
        const held = new Set(isGuess ? [] : [stored[field]].flat());
        for (const value of [next[field]].flat()) {
          if (typeof value === 'string' && !held.has(value)) wanted.set(`${to} ${value}`, { field, to, id: value });
        }
      }
      if (wanted.size > MAX_CHECKS) throw tooManyReferences();
      const unknown = [...wanted].filter(([key]) => !targets.has(key));
      if (unknown.length > 0) {
        throw new AskOutside(async () => {
          const readable = new Map();
          for (const [key, each] of unknown) {
            await turn();
            targets.set(key, await findTarget(app, { collection, referrer, earlier, readable }, each));
          }
        });
      }
      for (const key of wanted.keys()) {
        const { collection: target, filter, refusal } = targets.get(key)!;
        if (exists(documentsName(target), filter, true)) continue;
        throw new AskOutside(async () => {
          throw (await refusal()) ?? referredChanging();
        });
      }
    },
  };
}
