import { useState } from 'preact/hooks';
import type { Collection, DeclaredField } from '../collection.js';
import { useDraft } from '../drafts.js';
import { changedEntries, readJson } from '../json.js';
import { writeUniqueText } from '../../exchange/unique-text.js';

/** What can be changed of a collection. */
export interface CollectionSettings extends Pick<Collection, 'mode' | 'fields' | 'indexes'> {
  uniques?: Unique[];
  /** null for never. */
  expire?: NonNullable<Collection['expire']> | null;
  /** Absent for collections with rules. */
  access?: AccessWord;
  /** With the access public-read or private. */
  ownerField?: string;
}

export type Unique = NonNullable<Collection['uniques']>[number];

export type AccessWord = Exclude<Collection['access'], 'rules'>;

const NEW: CollectionSettings = {
  mode: 'enforced',
  fields: [{ name: 'title', type: 'String', required: true }],
  indexes: [],
  access: 'server-only',
};

interface SettingsDraft {
  name: string;
  settings: CollectionSettings;
  /** As JSON, while that is what is edited. */
  text: string | null;
}

/** The settings of a collection while they are edited, in the table or as JSON; null for one that is not there yet. */
export function useSettings(path: string, collection: Collection | null) {
  const [before] = useState<CollectionSettings>(() => (collection ? settingsOf(collection) : NEW));
  const [first] = useState<SettingsDraft>(() => ({ name: collection?.name ?? '', settings: before, text: null }));
  const [draft, setDraft, kept] = useDraft<SettingsDraft>(`${path} settings`, first);
  const { name, text } = draft;
  const read = text === null ? { settings: draft.settings, problem: null } : readSettings(text);
  return {
    before,
    name,
    /** null while the JSON is none. */
    settings: read.settings,
    problem: read.problem,
    isChanged: kept.isChanged,
    forget: kept.forget,
    writeText: (): string => text ?? JSON.stringify(draft.settings, null, 2),
    setName: (next: string) => setDraft({ ...draft, name: next }),
    setSettings: (next: CollectionSettings) => setDraft({ ...draft, settings: next, text: null }),
    setText: (next: string) =>
      setDraft({ ...draft, settings: readSettings(next).settings ?? draft.settings, text: next }),
  };
}

export type EditedSettings = ReturnType<typeof useSettings>;

const settingsOf = ({ mode, fields, indexes, uniques, expire, access, rls }: Collection): CollectionSettings => ({
  mode,
  fields,
  indexes,
  ...(uniques && { uniques }),
  ...(expire && { expire }),
  ...(access !== 'rules' && { access }),
  ...(rls.enabled && { ownerField: rls.ownerField }),
});

/** A unique in a line of text. */
export const writeUnique = (unique: Unique): string =>
  writeUniqueText(Array.isArray(unique) ? { fields: unique, where: {} } : unique);

function readSettings(text: string): { settings: CollectionSettings | null; problem: string | null } {
  const read = readJson(text);
  if (read.problem !== null) return { settings: null, problem: read.problem };
  const settings = read.value as CollectionSettings | null;
  return Array.isArray(settings?.fields) && Array.isArray(settings.indexes)
    ? { settings, problem: null }
    : { settings: null, problem: 'A collection has lists of fields and indexes.' };
}

/** Only what was changed is sent: what rules say of access stays as it is. The owner field goes with the access. */
export function changedOf(before: CollectionSettings, after: CollectionSettings): Partial<CollectionSettings> {
  const changed = changedEntries(before, after);
  return changed.ownerField === undefined || !after.access ? changed : { ...changed, access: after.access };
}

/** The changes between two settings, a line each. */
export function describeChanges(before: CollectionSettings, after: CollectionSettings): string[] {
  const old = new Map(before.fields.map((field) => [field.name, field]));
  const kept = new Set(after.fields.map(({ name }) => name));
  const ofFields = after.fields.flatMap((field) => {
    const known = old.get(field.name);
    if (!known) return [`+ field ${show(field)}`];
    return show(known) === show(field) ? [] : [`field ${show(known)} → ${show(field)}`];
  });
  return [
    ...ofFields,
    ...before.fields
      .filter(({ name }) => !kept.has(name))
      .map((field) => `− field ${show(field)}: its values stay stored`),
    ...describeList('index', before.indexes, after.indexes),
    ...describeList('unique', presentUniques(before), presentUniques(after)),
    ...(presentExpire(before) === presentExpire(after)
      ? []
      : [`expire ${presentExpire(before)} → ${presentExpire(after)}`]),
    ...(before.mode === after.mode ? [] : [`mode ${before.mode} → ${after.mode}`]),
    ...(presentAccess(before) === presentAccess(after)
      ? []
      : [`access ${presentAccess(before)} → ${presentAccess(after)}`]),
  ];
}

const describeList = (what: string, before: readonly string[], after: readonly string[]): string[] => [
  ...after.filter((each) => !before.includes(each)).map((each) => `+ ${what} ${each}`),
  ...before.filter((each) => !after.includes(each)).map((each) => `− ${what} ${each}`),
];

const presentUniques = ({ uniques = [] }: CollectionSettings): string[] => uniques.map(writeUnique);

export const presentExpire = ({ expire }: Pick<CollectionSettings, 'expire'>): string =>
  expire
    ? `by ${expire.field}${expire.after ? ` after ${expire.after}` : ''}${expire.permanent ? ' permanently' : ''}`
    : 'never';

const presentAccess = ({ access = 'server-only', ownerField }: CollectionSettings): string =>
  ownerField === undefined ? access : `${access} by ${ownerField}`;

function show({ name, type, ...more }: DeclaredField): string {
  const marks = Object.entries<unknown>(more).map(([mark, value]) =>
    value === true ? mark : `${mark} ${JSON.stringify(value)}`,
  );
  return [`${name}: ${type}`, ...marks].join(', ');
}
