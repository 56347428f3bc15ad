import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { howMany, number } from '../format.js';
import { say, Trouble, useAction } from '../parts/basics.js';
import { type CommandLine, CommandList, ofProject } from '../parts/commands.js';
import { Drawer } from '../parts/drawer.js';
import { Field } from '../parts/form.js';
import { JsonEditor } from '../parts/json-editor.js';
import { linkHere, place } from '../routes.js';
import { FieldsForm } from './fields-form.js';
import { useSettings, type EditedSettings, type CollectionSettings } from './use-settings.js';
import type { Collection, CollectionField } from '../collection.js';

/** How many stored documents would not be let in as they are. */
interface FitReport {
  checked: number;
  misfits: number;
  examples: { id: string; message: string }[];
}

/** Fields, mode, indexes and access of a collection; nothing is saved before its consequences were shown. */
export function CollectionEditor({
  base,
  collection,
  collections,
  onSaved,
  onClose,
}: {
  base: string;
  /** null for one that is registered by this. */
  collection: Collection | null;
  /** Names that a Ref can point to. */
  collections: readonly string[];
  onSaved: () => void;
  onClose: () => void;
}) {
  const edited = useSettings(`${base}/${collection?.name ?? ''}`, collection);
  return (
    <Drawer
      title={collection ? `Edit ${collection.name}` : 'Register a collection'}
      isDirty={edited.isChanged}
      onKeep={onClose}
      onClose={() => {
        edited.forget();
        onClose();
      }}
      wide
    >
      <Editor base={base} collection={collection} collections={collections} edited={edited} onSaved={onSaved} />
    </Drawer>
  );
}

function Editor({
  base,
  collection,
  collections,
  edited,
  onSaved,
}: {
  base: string;
  collection: Collection | null;
  collections: readonly string[];
  edited: EditedSettings;
  onSaved: () => void;
}) {
  const { before, name, settings, problem } = edited;
  const isJson = place.value.query.get('as') === 'json';
  const [looked, setLooked] = useState<{ text: string; report: FitReport } | null>(null);
  const text = JSON.stringify(settings);
  const body = settings && collection ? changedOf(before, settings) : settings;
  const changes = settings && collection ? describeChanges(before, settings) : [];
  const path = collection ? `${base}/${collection.name}` : base;
  const named = name.trim();
  const [looking, look, lookRefused] = useAction(async () => {
    setLooked({ text, report: await api<FitReport>('PATCH', `${path}?check=true`, body) });
  });
  const [busy, save, refused] = useAction(async () => {
    await (collection ? api('PATCH', path, body) : api('POST', base, { name: named, ...settings }));
    edited.forget();
    say(collection ? 'Collection changed' : 'Collection registered');
    onSaved();
  });
  const hasLooked = looked?.text === text;
  return (
    <>
      {!collection && (
        <div class="row" data-kept="">
          <Field label="Name" value={name} onText={edited.setName} autocomplete="off" required />
        </div>
      )}
      <Tabs isJson={isJson} />
      {isJson ? (
        <CollectionJson edited={edited} />
      ) : (
        settings && (
          <FieldsForm
            settings={settings}
            known={new Set(collection?.fields.map((field) => field.name))}
            collections={collections}
            hasRules={Boolean(collection?.rules)}
            onSettings={edited.setSettings}
          />
        )
      )}
      {problem !== null && <p class="bad">{problem}</p>}
      <Trouble error={lookRefused ?? refused} />
      {changes.length > 0 && <Changes lines={changes} />}
      {hasLooked && <Fit {...looked.report} />}
      <CommandList
        lines={() => commandsOf(path, collection, collection ? (body ?? {}) : { name: named, ...(settings ?? before) })}
      />
      <p class="foot">
        {collection && (
          <button disabled={looking || !settings || changes.length === 0} onClick={() => void look()}>
            Preview of what would not fit
          </button>
        )}
        {(collection ? hasLooked : settings !== null) && (
          <button
            class="primary end"
            disabled={busy || (collection ? changes.length === 0 : named === '')}
            onClick={() => void save()}
          >
            {collection ? 'Save' : 'Register'}
          </button>
        )}
      </p>
    </>
  );
}

function commandsOf(
  path: string,
  collection: Collection | null,
  body: Partial<CollectionSettings> & { name?: string },
): CommandLine[] {
  if (!collection) {
    const name = body.name === undefined || body.name === '' ? 'posts' : body.name;
    const cli = `bsvc collection add ${name} --field title:String! --rls private ${ofProject()}`;
    return [{ cli, method: 'POST', path, body: { ...body, name } }];
  }
  const edit = `bsvc collection edit ${collection.name} --add-field note:String ${ofProject()}`;
  return [
    { name: 'See what changes', cli: `${edit} --check`, method: 'PATCH', path: `${path}?check=true`, body },
    { name: 'Save', cli: edit, method: 'PATCH', path, body },
  ];
}

function Tabs({ isJson }: { isJson: boolean }) {
  return (
    <nav class="tabs" aria-label="Views of the collection">
      <a href={linkHere({ as: null })} {...(!isJson && { 'aria-current': 'page' as const })}>
        Fields
      </a>
      <a href={linkHere({ as: 'json' })} {...(isJson && { 'aria-current': 'page' as const })}>
        JSON
      </a>
    </nav>
  );
}

function Changes({ lines }: { lines: readonly string[] }) {
  return (
    <section aria-label="Changes">
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </section>
  );
}

function CollectionJson({ edited }: { edited: EditedSettings }) {
  const [first] = useState(edited.writeText);
  return <JsonEditor text={first} label="Collection as JSON" onChange={edited.setText} />;
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

/** Only what was changed is sent: what rules say of access stays as it is. */
const changedOf = (before: CollectionSettings, after: CollectionSettings): Partial<CollectionSettings> =>
  Object.fromEntries(
    Object.entries(after).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key as keyof CollectionSettings]),
    ),
  );

/** The changes between two settings, a line each. */
function describeChanges(before: CollectionSettings, after: CollectionSettings): string[] {
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
