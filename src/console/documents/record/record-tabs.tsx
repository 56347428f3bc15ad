import type { ComponentType } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { below } from '../../api-paths.js';
import type { CollectionField } from '../../collection.js';
import { Preview, previewAddress, publicAddress } from '../../files/stored-file.js';
import { bytes, moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { ErrorNote } from '../../parts/basics.js';
import { Choice, Field } from '../../parts/form.js';
import { JsonEditor } from '../../parts/json-editor.js';
import { FormContext } from '../../parts/schema-form/form-place.js';
import { SchemaFields } from '../../parts/schema-form/schema-form.js';
import { AccessTab } from './access-tab.js';
import { HistoryTab } from './history-tab.js';
import { type RecordView, textOf } from './use-record.js';
import { ReferencesTab } from './references-tab.js';

const TYPES = ['String', 'Number', 'Boolean', 'Date', 'Array', 'Object', 'Ref'] as const;

/** A form made from the schema; undeclared fields have an input that fits their value. */
function RecordForm({ collection, collections, record, isFixed }: RecordView) {
  const { fields, setFields, errors, report } = record;
  const [added, setAdded] = useState<readonly CollectionField[]>([]);
  const others = useMemo(() => {
    const declared = new Set([...collection.fields, ...added].map(({ name }) => name));
    return Object.entries(fields).flatMap(([name, value]) =>
      declared.has(name) ? [] : [{ name, type: typeOf(value) } satisfies CollectionField],
    );
  }, [collection, added, fields]);
  const form = useRef<HTMLFormElement>(null);
  // What is to be typed, rather than the button that closes; who has gone on already stays there.
  useEffect(() => {
    const { activeElement: now } = document;
    if (!isFixed && (now === document.body || now?.getAttribute('aria-label') === 'Close')) {
      form.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    }
  }, []);
  // To the first field that was refused: it may be scrolled away.
  useEffect(() => {
    if (record.error) form.current?.querySelector<HTMLElement>('.wrong :is(input, select, textarea)')?.focus();
  }, [record.error]);
  const place = { collections, isFixed, errors, report };
  const shown = [...collection.fields, ...others, ...added];
  const named = new Set(shown.map(({ name }) => name));
  const elsewhere = [...errors].filter(([path]) => !named.has(path.split('.')[0]!));
  return (
    <FormContext.Provider value={place}>
      <form
        ref={form}
        class="schema-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (record.canSave) void record.save();
        }}
      >
        <SchemaFields fields={shown} value={fields} onChange={setFields} />
        {elsewhere.map(([path, message]) => (
          <p key={path} class="field-error" role="alert">
            {path}: {message}
          </p>
        ))}
        {shown.length === 0 && <p class="muted">The collection declares no fields: add the first one.</p>}
        {/* Enter in a field saves, as in every form. */}
        <button class="hidden" tabIndex={-1} aria-hidden="true" />
      </form>
      {!isFixed && collection.mode === 'flexible' && (
        <AddField known={named} onAdd={(field) => setAdded([...added, field])} />
      )}
    </FormContext.Provider>
  );
}

function AddField({ known, onAdd }: { known: ReadonlySet<string>; onAdd: (field: CollectionField) => void }) {
  const [name, setName] = useState('');
  const [type, setType] = useState<(typeof TYPES)[number]>('String');
  const trimmed = name.trim();
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (trimmed === '' || known.has(trimmed)) return;
        onAdd({ name: trimmed, type, ...(type === 'Array' && { items: { type: 'String' } }) });
        setName('');
      }}
    >
      <Field label="Another field" value={name} autocomplete="off" onChange={setName} />
      <Choice label="Type" value={type} choices={TYPES.map((each) => [each, each] as const)} onChange={setType} />
      <button disabled={trimmed === '' || known.has(trimmed)}>Add the field</button>
    </form>
  );
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

function typeOf(value: unknown): CollectionField['type'] {
  if (typeof value === 'string') return MOMENT.test(value) ? 'Date' : 'String';
  if (typeof value === 'number') return 'Number';
  if (typeof value === 'boolean') return 'Boolean';
  return Array.isArray(value) ? 'Array' : 'Object';
}

interface RecordTab {
  /** In the address. */
  name: string;
  label: string;
  /** Says nothing of a document that is not stored yet. */
  ofStored?: true;
  View: ComponentType<RecordView>;
}

/** The views of a record, in the order of their tabs; the first one is shown unless the address names another. */
export const RECORD_TABS: readonly RecordTab[] = [
  { name: 'form', label: 'Form', View: RecordForm },
  { name: 'json', label: 'JSON', View: JsonTab },
  { name: 'history', label: 'History', ofStored: true, View: HistoryTab },
  { name: 'references', label: 'References', ofStored: true, View: ReferencesTab },
  { name: 'files', label: 'Files', ofStored: true, View: FilesTab },
  { name: 'access', label: 'Access', ofStored: true, View: AccessTab },
];

function JsonTab({ record, isFixed }: RecordView) {
  const [first] = useState(() => textOf(record));
  return <JsonEditor text={first} label="Document as JSON" isReadOnly={isFixed} onChange={record.setText} />;
}

/** The files of a document, by links that end after ten minutes. */
function FilesTab({ base, record }: RecordView) {
  const { data, error, reload } = useLoad(below(base, '/{document}/files', { document: record.stored?._id ?? '' }));
  return (
    <>
      <ErrorNote error={error} onRetry={reload} />
      {!data && !error && <p class="empty">Loading…</p>}
      {data?.items.length === 0 && <p class="empty">No attached files. Apps attach files when they upload them.</p>}
      {data?.items.map((file) => (
        <section key={file.path}>
          <h3 dir="auto">{file.name}</h3>
          <Preview file={file} url={previewAddress(file.link)} />
          <p class="muted">
            {file.contentType}, {bytes(file.size)}, {moment(file.createdAt)}{' '}
            {publicAddress({ ...file, url: file.link }) !== null && (
              <a href={file.link!} target="_blank" rel="noopener noreferrer">
                Open
              </a>
            )}
          </p>
        </section>
      ))}
    </>
  );
}
