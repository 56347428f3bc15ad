import { useEffect, useState } from 'preact/hooks';
import type { DeclaredField } from '../collection.js';
import { Choice, Field, TextArea, Tick } from '../parts/form.js';
import { linkHere, place, replaceWith } from '../routes.js';
import { FieldRow } from './field-row.js';
import { type AccessWord, type CollectionSettings, writeUnique, type Unique } from './use-settings.js';
import { readUniqueText } from '../../exchange/unique-text.js';

const ACCESS: readonly (readonly [AccessWord, string])[] = [
  ['server-only', 'only your server, with the secret key'],
  ['private', 'signed-in users, each their own documents'],
  ['public-read', 'everyone reads, signed-in users write their own documents'],
  ['public', 'everyone reads, only your server writes'],
];

const MODES: readonly (readonly [CollectionSettings['mode'], string])[] = [
  ['enforced', 'are refused'],
  ['flexible', 'are stored as they come'],
];

/** Fields, indexes, mode and access of a collection, each edited in its place. */
export function FieldsForm({
  settings,
  known,
  collections,
  hasRules,
  onSettings,
}: {
  settings: CollectionSettings;
  /** Names of the fields that are stored already: they stay as they are. */
  known: ReadonlySet<string>;
  collections: readonly string[];
  /** The collection has rules, so this setting has no effect. */
  hasRules: boolean;
  onSettings: (next: CollectionSettings) => void;
}) {
  const { fields, indexes, mode } = settings;
  const setField = (at: number, next: DeclaredField): void =>
    onSettings({ ...settings, fields: fields.with(at, next) });
  // Which row was added here: its name is typed next.
  const [added, setAdded] = useState<number | null>(null);
  const add = (): void => {
    setAdded(fields.length);
    onSettings({ ...settings, fields: [...fields, { name: '', type: 'String' }] });
  };
  // The head of a grid asks for a new field by the address, once.
  useEffect(() => {
    if (place.value.query.get('add') === null) return;
    replaceWith(linkHere({ add: null }));
    if (fields.at(-1)?.name !== '') add();
  }, []);
  return (
    <>
      <ol class="field-rows" aria-label="Fields">
        {fields.map((field, at) => (
          <FieldRow
            key={at}
            field={field}
            // The first of a name: another one that is given it is refused by the server, and can be renamed.
            isStored={known.has(field.name) && fields.findIndex(({ name }) => name === field.name) === at}
            collections={collections}
            isAdded={at === added}
            onField={(next) => setField(at, next)}
            onRemove={() => onSettings({ ...settings, fields: fields.filter((_, index) => index !== at) })}
          />
        ))}
      </ol>
      <button onClick={add}>Add a field</button>
      <div class="schema-form settings">
        <div class="row">
          <Choice
            label="Other fields"
            value={mode}
            choices={MODES}
            onChange={(next) => onSettings({ ...settings, mode: next })}
          />
          {!hasRules && <AccessChoice settings={settings} onSettings={onSettings} />}
        </div>
        <TextArea
          label="Indexes, one per line: views, or status,-views"
          rows={3}
          value={indexes.join('\n')}
          onChange={(text) => onSettings({ ...settings, indexes: text === '' ? [] : text.split('\n') })}
        />
        <UniquesField settings={settings} onSettings={onSettings} />
        <ExpireFields settings={settings} onSettings={onSettings} />
      </div>
    </>
  );
}

function AccessChoice({
  settings,
  onSettings,
}: {
  settings: CollectionSettings;
  onSettings: (next: CollectionSettings) => void;
}) {
  const { access = 'server-only', ownerField = 'userId', ...others } = settings;
  const isOwned = access === 'public-read' || access === 'private';
  const set = (next: AccessWord): void =>
    onSettings({
      ...others,
      access: next,
      ...((next === 'public-read' || next === 'private') && { ownerField }),
    });
  return (
    <>
      <Choice label="Who may access it" value={access} choices={ACCESS} onChange={set} />
      {isOwned && (
        <Field
          label="Field of the owner"
          value={ownerField}
          onChange={(text) => onSettings({ ...settings, ownerField: text })}
        />
      )}
    </>
  );
}

interface Edited {
  settings: CollectionSettings;
  onSettings: (next: CollectionSettings) => void;
}

/** What cannot be read is sent as it is, and rejected by the server. */
function readUnique(line: string): Unique {
  const read = readUniqueText(line) ?? { fields: [line], where: {} };
  return Object.keys(read.where).length > 0 ? read : read.fields;
}

/** Fields that are unique together, one line each. */
function UniquesField({ settings, onSettings }: Edited) {
  const [text, setText] = useState((settings.uniques ?? []).map(writeUnique).join('\n'));
  return (
    <TextArea
      label="Unique together, one per line: board,user, or staff,at where status=booked"
      rows={2}
      value={text}
      onChange={(next) => {
        setText(next);
        const lines = next.split('\n').filter((line) => line.trim() !== '');
        onSettings({ ...settings, uniques: lines.map(readUnique) });
      }}
    />
  );
}

/** When documents go by themselves. */
function ExpireFields({ settings, onSettings }: Edited) {
  const { expire = null, fields } = settings;
  const dates = fields.filter(({ type, name }) => type === 'Date' && name !== '').map(({ name }) => name);
  const moments = [...new Set([...dates, 'createdAt', 'updatedAt', ...(expire ? [expire.field] : [])])];
  const set = (next: CollectionSettings['expire']): void => onSettings({ ...settings, expire: next ?? null });
  return (
    <div class="row">
      <Choice
        label="Documents expire"
        value={expire?.field ?? ''}
        choices={[['', 'never'], ...moments.map((name) => [name, `by ${name}`] as const)]}
        onChange={(field) => set(field === '' ? null : { ...expire, field })}
      />
      {expire && (
        <>
          <Field
            label="Time after that, such as 30d"
            value={expire.after ?? ''}
            onChange={(text) => {
              const { after: _, ...others } = expire;
              set(text === '' ? others : { ...others, after: text });
            }}
          />
          <Tick
            label="permanently, not to the trash"
            value={expire.permanent ?? false}
            onChange={(isSet) => {
              const { permanent: _, ...others } = expire;
              set(isSet ? { ...others, permanent: true } : others);
            }}
          />
        </>
      )}
    </div>
  );
}
