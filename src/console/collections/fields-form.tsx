import { useEffect, useState, useLayoutEffect, useRef } from 'preact/hooks';
import type { DeclaredField } from '../collection.js';
import { Choice, Field, TextArea, Tick } from '../parts/form.js';
import { linkHere, place, replaceWith } from '../routes.js';
import { type AccessWord, type CollectionSettings, writeUnique, type Unique } from './use-settings.js';
import { readUniqueText } from '../../exchange/unique-text.js';
import { readNumber, writeScalar } from '../parts/schema-form/scalar-inputs.js';

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

const TYPES = ['String', 'Number', 'Boolean', 'Date', 'Object', 'Array', 'Ref'] as const;
const ITEMS = ['String', 'Number', 'Boolean', 'Date', 'Object', 'Ref'] as const;

interface RowProps {
  field: DeclaredField;
  /** Its name stays: documents have values under it. */
  isStored: boolean;
  collections: readonly string[];
  /** It was added just now: its name is typed next. */
  isAdded: boolean;
  onField: (next: DeclaredField) => void;
  onRemove: () => void;
}

/** One field: its name, type and marks in a line, the rest of its rules below. */
function FieldRow({ field, isStored, collections, isAdded, onField, onRemove }: RowProps) {
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (isAdded) input.current?.focus();
  }, [isAdded]);
  const { name, type, required = false, unique = false, nocase = false } = field;
  const shown = name === '' ? 'the new field' : name;
  const mark = (key: 'required' | 'unique' | 'nocase', isSet: boolean): void =>
    onField(
      withRule(key === 'required' && isSet ? withRule(field, 'default', undefined) : field, key, isSet || undefined),
    );
  return (
    <li>
      <input
        ref={input}
        class="name"
        aria-label={`Name of ${shown}`}
        placeholder="name"
        autocomplete="off"
        value={name}
        readOnly={isStored}
        onInput={(event) => onField({ ...field, name: event.currentTarget.value })}
      />
      <select
        aria-label={`Type of ${shown}`}
        value={type}
        onChange={({ currentTarget: { value } }) =>
          onField(
            retyped(
              field,
              TYPES.find((each) => each === value)!,
              collections,
            ),
          )
        }
      >
        {TYPES.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <Inside field={field} shown={shown} collections={collections} onField={onField} />
      <Tick label="required" value={required} onChange={(isSet) => mark('required', isSet)} />
      {type !== 'Object' && type !== 'Array' && (
        <Tick label="unique" value={unique} onChange={(isSet) => mark('unique', isSet)} />
      )}
      {type === 'String' && <Tick label="any case" value={nocase} onChange={(isSet) => mark('nocase', isSet)} />}
      <button class="small quiet end" aria-label={`Remove ${shown}`} onClick={onRemove}>
        Remove
      </button>
      <Rules field={field} shown={shown} onField={onField} />
      {type === 'Ref' && <ReferenceRules field={field} shown={shown} onField={onField} />}
    </li>
  );
}

/** What a Ref points to, or what the items of a list are. */
function Inside({
  field,
  shown,
  collections,
  onField,
}: Pick<RowProps, 'field' | 'collections' | 'onField'> & { shown: string }) {
  const { type, items, ref } = field;
  if (type === 'Array') {
    return (
      <select
        aria-label={`Items of ${shown}`}
        value={items?.type ?? ''}
        onChange={({ currentTarget: { value } }) =>
          onField(withRule(field, 'items', value === '' ? undefined : { type: value }))
        }
      >
        <option value="">of anything</option>
        {ITEMS.map((each) => (
          <option key={each} value={each}>
            of {each}
          </option>
        ))}
      </select>
    );
  }
  if (type !== 'Ref') return null;
  return (
    <select
      aria-label={`Collection of ${shown}`}
      value={ref ?? ''}
      onChange={({ currentTarget: { value } }) => onField(withRule(field, 'ref', value === '' ? undefined : value))}
    >
      <option value="">to any</option>
      {collections.map((each) => (
        <option key={each} value={each}>
          to {each}
        </option>
      ))}
    </select>
  );
}

/** Rules with one number or text each, by the types that have them. */
const RULES = [
  ['minLength', 'Characters from', ['String'], true],
  ['maxLength', 'to', ['String'], true],
  ['pattern', 'Matches', ['String'], false],
  ['min', 'From', ['Number'], true],
  ['max', 'to', ['Number'], true],
  ['minItems', 'Items from', ['Array'], true],
  ['maxItems', 'to', ['Array'], true],
  ['default', 'When left out', ['String', 'Number'], false],
] as const;

function Rules({ field, shown, onField }: Pick<RowProps, 'field' | 'onField'> & { shown: string }) {
  const { type } = field;
  const rules = RULES.filter(
    ([key, , types]) => types.some((each) => each === type) && !(key === 'default' && field.required),
  );
  if (rules.length === 0) return null;
  return (
    <details>
      <summary>Rules of {shown}</summary>
      <div class="row">
        {rules.map(([key, label, , isNumber]) => (
          <Field
            key={key}
            label={label}
            value={writeScalar(field[key])}
            onChange={(value) => {
              const number = isNumber || type === 'Number';
              // What is no number is sent as typed and rejected by the server.
              onField(
                withRule(field, key, value === '' ? undefined : number ? (readNumber(value).value ?? value) : value),
              );
            }}
          />
        ))}
        {(type === 'String' || type === 'Number') && (
          <Field
            label="One of (comma-separated)"
            value={field.enum?.join(',') ?? ''}
            onChange={(value) => onField(withRule(field, 'enum', readChoices(value, type)))}
          />
        )}
      </div>
    </details>
  );
}

const ON_DELETE = [
  ['', 'this stays as it is'],
  ['restrict', 'that is refused'],
  ['unset', 'this field is cleared'],
  ['trash', 'this goes to the trash'],
  ['remove', 'the value is removed permanently'],
] as const;

/** What a reference demands of the document that it names. */
function ReferenceRules({ field, shown, onField }: Pick<RowProps, 'field' | 'onField'> & { shown: string }) {
  const { check = false, onDelete = '', same } = field;
  // Each of the others needs the check.
  const set = (key: 'onDelete' | 'same', value: unknown): void =>
    onField(withRule(value === undefined ? field : { ...field, check: true }, key, value));
  return (
    <details>
      <summary>Rules of {shown}</summary>
      <div class="row">
        <Tick
          label="the document must exist"
          value={check}
          onChange={(isSet) =>
            onField(
              isSet
                ? { ...field, check: true }
                : withRule(withRule(withRule(field, 'check', undefined), 'onDelete', undefined), 'same', undefined),
            )
          }
        />
        <Choice
          label="When it is deleted"
          value={onDelete}
          choices={ON_DELETE}
          onChange={(value) => set('onDelete', value === '' ? undefined : value)}
        />
        <Field
          label="With the same (comma-separated)"
          value={same?.join(',') ?? ''}
          onChange={(value) => set('same', value === '' ? undefined : value.split(','))}
        />
      </div>
    </details>
  );
}

function readChoices(text: string, type: string): (string | number)[] | undefined {
  if (text === '') return undefined;
  return text.split(',').map((each) => (type === 'Number' ? (readNumber(each).value ?? each) : each));
}

/** The field with a rule set, or without it for undefined. */
function withRule(field: DeclaredField, key: keyof DeclaredField, value: unknown): DeclaredField {
  const { [key]: _old, ...others } = field;
  return (value === undefined ? others : { ...others, [key]: value }) as DeclaredField;
}

/** Of another type a field keeps only its name and its marks. */
function retyped(
  { name, required, unique }: DeclaredField,
  type: DeclaredField['type'],
  collections: readonly string[],
): DeclaredField {
  return {
    name,
    type,
    ...(required && { required }),
    ...(unique && type !== 'Object' && type !== 'Array' && { unique }),
    ...(type === 'Array' && { items: { type: 'String' } }),
    ...(type === 'Ref' && collections[0] !== undefined && { ref: collections[0] }),
  };
}
