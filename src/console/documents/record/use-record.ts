import { useCallback, useMemo, useState } from 'preact/hooks';
import { below, withQuery } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { Refusal, call } from '../../api.js';
import { type Collection, type DocumentsPath, TRASHED_TOO } from '../../collection.js';
import { cell } from '../../format.js';
import { say, useAction } from '../../parts/basics.js';
import { findLostNumber } from '../../parts/json-editor.js';
import { useDraft } from '../../drafts.js';
import { differences, readJsonObject } from '../../json.js';

type JsonObject = Record<string, unknown>;

/** What is typed into a record, as fields or as JSON, and the document that it began with. */
interface RecordDraft {
  fields: JsonObject;
  /** As JSON, while that is what is edited. */
  text: string | null;
  stored: ShownFields | null;
  /** Of a new one, chosen here: sent again after an answer that did not come, it is stored once. */
  newId?: string;
}

interface RecordProps {
  base: DocumentsPath;
  id: string;
  loaded: ShownFields | null;
  onSaved: (id: string) => void;
}

/** A document that is looked at or edited; with the id `new` one that is not stored yet, a copy where one is loaded. */
export function useRecord({ base, id, loaded, onSaved }: RecordProps) {
  const isNew = id === 'new';
  const beginWith = (document: ShownFields | null): RecordDraft => ({
    fields: fieldsOf(document),
    text: null,
    stored: isNew ? null : document,
    ...(isNew && { newId: makeId() }),
  });
  const [first] = useState(() => beginWith(loaded));
  const name = `${base}/${id}${isNew && loaded ? ` of ${loaded._id}` : ''}`;
  const [draft, setDraft, kept] = useDraft(name, first, isUntouched);
  const { fields, text, stored } = draft;
  const [theirs, setTheirs] = useState<ShownFields | null>(null);
  const [typedProblems, setTypedProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const before = useMemo(() => fieldsOf(stored), [stored]);
  // Only what was changed is sent, so that others' changes to other fields stay.
  const change = useMemo(() => (stored ? differences(before, fields) : fields), [before, fields, stored]);
  const problem = text === null ? null : parseFields(text).problem;
  const lost = text === null ? null : findLostNumber(text);
  const isSame = Object.keys(change).length === 0;
  const [busy, save, error] = useAction(async () => {
    if (!stored) {
      finish(await store(base, draft.newId, change), 'Document stored');
      return;
    }
    const path = below(base, '/{document}', { document: stored._id });
    const headers = { 'if-match': `"${String((theirs ?? stored).updatedAt)}"` };
    try {
      await call('PATCH', path, { body: change, headers });
    } catch (refusal) {
      if (!(refusal instanceof Refusal) || refusal.code !== 'CHANGED_MEANWHILE') throw refusal;
      setTheirs(await call('GET', withQuery(path, TRASHED_TOO)));
      return;
    }
    finish(stored._id, 'Document changed');
  });
  const finish = (id: string, text: string): void => {
    kept.forget();
    say(text);
    onSaved(id);
  };
  // The error of a field is shown until the field is edited.
  const errors = useMemo(() => {
    const refused = (error?.details ?? []).map(({ field, message }) => [field, message] as const);
    return new Map([...refused, ...typedProblems]);
  }, [error, typedProblems]);
  const report = useCallback((path: string, found: string | null): void => {
    setTypedProblems((old) => {
      if ((old.get(path) ?? null) === found) return old;
      const next = new Map(old);
      if (found === null) next.delete(path);
      else next.set(path, found);
      return next;
    });
  }, []);
  return {
    ...{ stored, fields, text, theirs, change, problem, lost, isSame, errors, busy, save, error, report },
    isChanged: kept.isChanged,
    wasKept: kept.wasKept,
    forget: kept.forget,
    canSave: !busy && problem === null && lost === null && typedProblems.size === 0 && !(stored !== null && isSame),
    setFields: (next: JsonObject) => setDraft({ ...draft, fields: next, text: null }),
    setText: (next: string) => {
      const read = parseFields(next);
      setDraft({ ...draft, fields: read.fields ?? fields, text: next });
    },
    /** Begins again with a document as it is stored now. */
    reset(document: ShownFields | null = loaded) {
      setTheirs(null);
      setTypedProblems(new Map());
      setDraft(beginWith(document));
    },
  };
}

/** Stores a new document, or what was typed since where an earlier attempt has stored it unheard; its id. */
async function store(base: DocumentsPath, newId: string | undefined, fields: JsonObject): Promise<string> {
  try {
    return (await call('POST', base, { body: { ...(newId && { _id: newId }), ...fields } }))._id;
  } catch (refusal) {
    const isOwn = refusal instanceof Refusal && refusal.details.some(({ field }) => field === '_id');
    if (!isOwn || newId === undefined || fields._id !== undefined) throw refusal;
    const path = below(base, '/{document}', { document: newId });
    const stored = await call('GET', withQuery(path, TRASHED_TOO));
    const before = fieldsOf(stored);
    const rest = differences(before, { ...before, ...fields });
    const headers = { 'if-match': `"${String(stored.updatedAt)}"` };
    if (Object.keys(rest).length > 0) await call('PATCH', path, { body: rest, headers });
    return newId;
  }
}

/** As the server makes them: the time in seconds and eight random bytes. */
function makeId(): string {
  const time = Math.floor(Date.now() / 1000).toString(16);
  const random = crypto.getRandomValues(new Uint8Array(8));
  return time + Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function isUntouched({ fields, text, stored }: RecordDraft, first: RecordDraft): boolean {
  if (text !== null && parseFields(text).problem !== null) return false;
  return Object.keys(differences(stored ? fieldsOf(stored) : first.fields, fields)).length === 0;
}

export type EditedRecord = ReturnType<typeof useRecord>;

export const textOf = ({ text, fields }: EditedRecord): string => text ?? JSON.stringify(fields, null, 2);

const parseFields = (text: string) => readJsonObject(text, 'A document is a JSON object.');

/** A document as the operators' API answers it. */
export type ShownFields = ApiSchemas['ShownDocument'];

/** Kept by the server: shown, never sent. */
export const OF_SERVER: ReadonlySet<string> = new Set(['_id', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt']);

/** A stored value in one line, beside another version of it. */
export const writeValue = (value: unknown): string => (value === undefined ? '–' : cell(JSON.stringify(value), 300));

function fieldsOf(document: ShownFields | null): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document ?? {}).filter(([name]) => !OF_SERVER.has(name)));
}

export interface RecordPlace {
  base: DocumentsPath;
  collection: Collection;
  /** Of the project. */
  collections: readonly Collection[];
}

/** What a tab of a record is given. */
export interface RecordView extends RecordPlace {
  record: EditedRecord;
  isFixed: boolean;
}
