import { useState } from 'preact/hooks';
import { below } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { call, prepare, type Prepared } from '../api.js';
import type { Collection, CollectionPath, CollectionsPath } from '../collection.js';
import { howMany, number } from '../format.js';
import { say, ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Drawer } from '../parts/drawer.js';
import { Field } from '../parts/form.js';
import { JsonEditor } from '../parts/json-editor.js';
import { Tabs } from '../parts/page-head.js';
import { linkHere, place } from '../routes.js';
import { FieldsForm } from './fields-form.js';
import {
  changedOf,
  describeChanges,
  useSettings,
  type EditedSettings,
  type CollectionSettings,
} from './use-settings.js';

/**
 * Fields, mode, indexes and access of a collection. What stored documents would break is shown before it is saved:
 * saving looks for it first, and goes on by itself where there is nothing to show.
 */
export function CollectionEditor({
  base,
  collection,
  collections,
  onSaved,
  onClose,
}: {
  base: CollectionsPath;
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
  base: CollectionsPath;
  collection: Collection | null;
  collections: readonly string[];
  edited: EditedSettings;
  onSaved: () => void;
}) {
  const { before, name, settings, problem } = edited;
  const isJson = place.value.query.get('as') === 'json';
  const text = JSON.stringify(settings);
  const body = settings && collection ? changedOf(before, settings) : settings;
  const changes = settings && collection ? describeChanges(before, settings) : [];
  const path = collection && below(base, '/{collection}', { collection: collection.name });
  const named = name.trim();
  const { looking, look, busy, save, report, error } = useSaving({
    path,
    changes: body ?? {},
    insert: () => call('POST', base, { body: { name: named, ...settings } }),
    text,
    onSaved() {
      edited.forget();
      say(collection ? 'Collection changed' : 'Collection registered');
      onSaved();
    },
  });
  return (
    <>
      {!collection && (
        <div class="row" data-kept="">
          <Field label="Name" value={name} onChange={edited.setName} required />
        </div>
      )}
      <Tabs
        label="Views of the collection"
        current={isJson ? 'json' : 'fields'}
        tabs={[
          ['fields', 'Fields', linkHere({ as: null })],
          ['json', 'JSON', linkHere({ as: 'json' })],
        ]}
      />
      {isJson ? (
        <CollectionJson edited={edited} />
      ) : (
        settings && (
          <FieldsForm
            settings={settings}
            known={new Set(collection?.fields.map((field) => field.name))}
            collections={collections}
            hasRules={collection?.access === 'rules'}
            onSettings={edited.setSettings}
          />
        )
      )}
      {problem !== null && <p class="bad">{problem}</p>}
      <ErrorNote error={error} />
      {changes.length > 0 && <Changes lines={changes} />}
      {report && <Fit {...report} />}
      <Commands
        of={() => requestsOf(base, path, collection ? (body ?? {}) : { name: named, ...(settings ?? before) })}
      />
      <p class="foot">
        {collection && (
          <button disabled={looking || !settings || changes.length === 0} onClick={() => void look()}>
            Check stored documents
          </button>
        )}
        <button
          class="primary end"
          disabled={busy || !settings || (collection ? changes.length === 0 : named === '')}
          onClick={() => void save()}
        >
          {!collection ? 'Register' : report && report.violations > 0 ? 'Save anyway' : 'Save'}
        </button>
      </p>
    </>
  );
}

/** Looks for invalid documents, and saves; the report is of the settings as they are now, or null. */
function useSaving({
  path,
  changes,
  insert,
  text,
  onSaved,
}: {
  /** null of one that is not there yet. */
  path: CollectionPath | null;
  changes: Partial<CollectionSettings>;
  insert: () => Promise<unknown>;
  /** The settings that a report is of. */
  text: string;
  onSaved: () => void;
}) {
  const [looked, setLooked] = useState<{ text: string; report: ApiSchemas['ValidationReport'] } | null>(null);
  const report = looked?.text === text ? looked.report : null;
  const find = async (to: CollectionPath): Promise<number> => {
    const found = await call('PATCH', to, { query: { check: true }, body: changes });
    if (!('violations' in found)) return 0;
    setLooked({ text, report: found });
    return found.violations;
  };
  const [looking, look, lookRefused] = useAction(async () => void (path && (await find(path))));
  const [busy, save, refused] = useAction(async () => {
    if (path && !report && (await find(path)) > 0) return;
    // An operator who has seen invalid documents may keep it: new constraints then count for what is written from now
    // on.
    const forNewWrites = report && report.violations > 0 && { forNewWrites: true };
    if (path) await call('PATCH', path, { body: { ...changes, ...forNewWrites } });
    else await insert();
    onSaved();
  });
  return { looking, look, busy, save, report, error: lookRefused ?? refused };
}

function requestsOf(
  base: CollectionsPath,
  path: CollectionPath | null,
  body: Partial<CollectionSettings> & { name?: string },
): Prepared[] {
  if (!path) return [prepare('POST', base, { body: { ...body, name: body.name || 'posts' } })];
  return [prepare('PATCH', path, { query: { check: true }, body }), prepare('PATCH', path, { body })];
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

/** How many stored documents would not be let in as they are. */
function Fit({ checked, violations, examples }: ApiSchemas['ValidationReport']) {
  return (
    <section role="status">
      <p class={violations > 0 ? 'bad' : 'good'}>
        {violations === 0
          ? checked === 0
            ? 'No stored document violates the new settings.'
            : `All of ${howMany(checked, 'stored document')} fit.`
          : `${number(violations)} of ${howMany(checked, 'stored document')} would be invalid. They stay as they are, but cannot be changed until they are valid.`}
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
