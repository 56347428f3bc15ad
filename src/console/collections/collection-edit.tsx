import { useEffect, useState } from 'preact/hooks';
import { api } from '../api.js';
import { howMany, number } from '../format.js';
import { say, Trouble, useAction } from '../parts/basics.js';
import { type CommandLine, CommandList, ofProject } from '../parts/commands.js';
import { Field } from '../parts/form.js';
import { JsonEditor, loadEditor } from '../parts/json-editor.js';
import type { Collection, CollectionField } from '../collection.js';

type Settings = Pick<Collection, 'mode' | 'fields' | 'indexes' | 'rls'>;

/** How many stored documents would not be let in as they are. */
interface FitReport {
  checked: number;
  misfits: number;
  examples: { id: string; message: string }[];
}

const NEW: Settings = {
  mode: 'enforced',
  fields: [{ name: 'title', type: 'String', required: true }],
  indexes: [],
  rls: { enabled: true, mode: 'private', ownerField: 'userId' },
};

/** Fields, mode, indexes and access of a collection as JSON; nothing is saved before its consequences were shown. */
export function CollectionEditor({
  base,
  collection,
  onSaved,
}: {
  base: string;
  /** null for one that is registered by this. */
  collection: Collection | null;
  onSaved: () => void;
}) {
  useEffect(() => void loadEditor(), []);
  const [before] = useState<Settings>(() => (collection ? settingsOf(collection) : NEW));
  const [first] = useState(() => JSON.stringify(before, null, 2));
  const [text, setText] = useState(first);
  const [name, setName] = useState(collection?.name ?? '');
  const [looked, setLooked] = useState<{ text: string; report: FitReport } | null>(null);
  const { settings, problem } = read(text);
  const changes = settings && collection ? describeChanges(before, settings) : [];
  const path = collection ? `${base}/${collection.name}` : base;
  const [looking, look, lookRefused] = useAction(async () => {
    setLooked({ text, report: await api<FitReport>('PATCH', `${path}?check=true`, settings) });
  });
  const [busy, save, refused] = useAction(async () => {
    await (collection ? api('PATCH', path, settings) : api('POST', base, { name: name.trim(), ...settings }));
    say(collection ? 'Collection changed' : 'Collection registered');
    onSaved();
  });
  const hasLooked = looked?.text === text;
  const commands = (): CommandLine[] => {
    const body = settings ?? before;
    if (!collection) {
      const cli = `bsvc collection add ${name.trim() || 'posts'} --field title:String! --rls private ${ofProject()}`;
      return [{ cli, method: 'POST', path: base, body: { name: name.trim() || 'posts', ...body } }];
    }
    const edit = `bsvc collection edit ${collection.name} --add-field note:String ${ofProject()}`;
    return [
      { name: 'See what changes', cli: `${edit} --check`, method: 'PATCH', path: `${path}?check=true`, body },
      { name: 'Save', cli: edit, method: 'PATCH', path, body },
    ];
  };
  return (
    <>
      {!collection && (
        <div class="row">
          <Field label="Name" value={name} onText={setName} autocomplete="off" required />
        </div>
      )}
      <JsonEditor text={first} label="Collection as JSON" onChange={setText} />
      {problem !== null && <p class="bad">{problem}</p>}
      <Trouble error={lookRefused ?? refused} />
      {changes.length > 0 && (
        <section aria-label="Changes">
          <ul>
            {changes.map((change) => (
              <li key={change}>{change}</li>
            ))}
          </ul>
        </section>
      )}
      {hasLooked && <Fit {...looked.report} />}
      <p class="row">
        {collection && (
          <button disabled={looking || !settings || changes.length === 0} onClick={() => void look()}>
            See what would not fit
          </button>
        )}
        {(collection ? hasLooked : settings !== null) && (
          <button
            class="primary"
            disabled={busy || (collection ? changes.length === 0 : name.trim() === '')}
            onClick={() => void save()}
          >
            {collection ? 'Save' : 'Register'}
          </button>
        )}
      </p>
      <CommandList lines={commands} />
    </>
  );
}

function Fit({ checked, misfits, examples }: FitReport) {
  return (
    <section role="status">
      <p class={misfits > 0 ? 'bad' : 'good'}>
        {misfits === 0
          ? checked === 0
            ? 'No document is stored that would not fit.'
            : `All of ${howMany(checked, 'stored document')} fit.`
          : `${number(misfits)} of ${howMany(checked, 'stored document')} would not fit: they stay, and are refused when somebody changes them.`}
      </p>
      {examples.length > 0 && (
        <ul>
          {examples.map(({ id, message }) => (
            <li key={id}>
              <code>{id}</code> {message}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const settingsOf = ({ mode, fields, indexes, rls }: Collection): Settings => ({ mode, fields, indexes, rls });

function read(text: string): { settings: Settings | null; problem: string | null } {
  try {
    const value = JSON.parse(text) as Settings;
    const isWhole = Array.isArray(value.fields) && Array.isArray(value.indexes);
    return isWhole
      ? { settings: value, problem: null }
      : { settings: null, problem: 'A collection has lists of fields and indexes.' };
  } catch (error) {
    return { settings: null, problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** The changes between two settings, a line each. */
function describeChanges(before: Settings, after: Settings): string[] {
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
    ...after.indexes.filter((index) => !before.indexes.includes(index)).map((index) => `+ index ${index}`),
    ...before.indexes.filter((index) => !after.indexes.includes(index)).map((index) => `− index ${index}`),
    ...(before.mode === after.mode ? [] : [`mode ${before.mode} → ${after.mode}`]),
    ...(JSON.stringify(before.rls) === JSON.stringify(after.rls)
      ? []
      : [`access ${JSON.stringify(before.rls)} → ${JSON.stringify(after.rls)}`]),
  ];
}

function show({ name, type, ...more }: CollectionField): string {
  const marks = Object.entries<unknown>(more).map(([mark, value]) =>
    value === true ? mark : `${mark} ${JSON.stringify(value)}`,
  );
  return [`${name}: ${type}`, ...marks].join(', ');
}
