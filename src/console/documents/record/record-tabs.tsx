import { useState, useEffect, useMemo, useRef } from 'preact/hooks';
import { below, withQuery, type Address, type DataOf } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { useLoad } from '../../load.js';
import { ErrorNote, attempt } from '../../parts/basics.js';
import { Field, Form, Choice } from '../../parts/form.js';
import { played, projectPath, mayChange } from '../../session.js';
import { type RecordView, textOf, OF_SERVER, writeValue, type ShownFields } from './use-record.js';
import { documentsIn, USERS, type Collection, type CollectionField } from '../../collection.js';
import { titleField, FormContext } from '../../parts/schema-form/form-place.js';
import { Table } from '../../parts/table.js';
import { linkTo, place } from '../../routes.js';
import type { ComponentType } from 'preact';
import { Preview, previewAddress, publicAddress } from '../../files/stored-file.js';
import { bytes, moment } from '../../format.js';
import { JsonEditor } from '../../parts/json-editor.js';
import { SchemaFields } from '../../parts/schema-form/schema-form.js';
import { call } from '../../api.js';

const ANYONE = 'anyone';

/** Who may do what with the document: each rule, evaluated for a user or an anonymous caller. */
function AccessTab({ collection, record }: RecordView) {
  // When viewing as a user, explain first why that user can read the document.
  const first = played.value ?? ANYONE;
  const [typed, setTyped] = useState(first === ANYONE ? '' : first);
  const [as, setAs] = useState(first);
  const path = below(projectPath(), '/rules/{collection}/explain', { collection: collection.name });
  const { data, error, reload } = useLoad(withQuery(path, { as, id: record.stored?._id }));
  return (
    <>
      <Form class="row" onSubmit={() => setAs(typed.trim() || ANYONE)}>
        <Field label="User: address or id, empty for anyone" value={typed} onChange={setTyped} />
        <button>Look as this user</button>
      </Form>
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <Table
          label="Access"
          loading={false}
          rows={data.rules}
          keyOf={({ rule }) => rule}
          empty="No rules."
          columns={[
            { name: 'May', kind: 'head', show: ({ rule }) => rule },
            {
              name: as === ANYONE ? 'Anyone' : as,
              show: ({ admits }) => <span class={`tag ${TONES[admits]}`}>{admits}</span>,
            },
            {
              name: 'Rule',
              kind: 'wrapped',
              show: ({ text, alternatives }) => (
                <>
                  <code>{text}</code>
                  {reasons(alternatives).map((reason) => (
                    <span key={reason} class="hint">
                      {reason}
                    </span>
                  ))}
                </>
              ),
            },
          ]}
        />
      )}
      {data?.document && data.document.leftOut.length > 0 && <p>Fields left out: {data.document.leftOut.join(', ')}</p>}
      <p class="muted">A secret key and operators are not asked for rules.</p>
    </>
  );
}

const TONES = { yes: 'good', no: 'bad', depends: 'warn' } as const;

/** The conditions that do not hold, or that depend on the document. */
const reasons = (alternatives: readonly ApiSchemas['ExplainedAlternative'][]): string[] =>
  alternatives.flatMap(({ conditions }) =>
    conditions.filter(({ admits }) => admits !== 'yes').map(({ text, admits }) => `${admits}: ${text}`),
  );

const SHOWN = 10;

/** The documents that a document names, and those that name it. */
function ReferencesTab({ collection, collections, record }: RecordView) {
  const id = record.stored?._id ?? '';
  const named = refsOf(collection).flatMap(({ name, ref }) =>
    [record.stored?.[name]].flat().flatMap((each) => (typeof each === 'string' ? [{ name, ref, id: each }] : [])),
  );
  const naming = collections.flatMap((other) =>
    other.name === USERS
      ? []
      : refsOf(other).flatMap(({ name, ref }) => (ref === collection.name ? [{ other, name }] : [])),
  );
  return (
    <>
      <h3>It names</h3>
      {named.length === 0 && <p class="muted">No other document.</p>}
      <ul class="refs">
        {named.map(({ name, ref, id: to }) => (
          <li key={`${name} ${to}`}>
            <a href={linkToDocument(ref, to)}>
              {name}: {ref} {to}
            </a>
          </li>
        ))}
      </ul>
      <h3>It is named by</h3>
      {naming.length === 0 && <p class="muted">No collection has a field that points to {collection.name}.</p>}
      {naming.map(({ other, name }) => (
        <Naming key={`${other.name} ${name}`} other={other} field={name} id={id} />
      ))}
    </>
  );
}

function Naming({ other, field, id }: { other: Collection; field: string; id: string }) {
  const title = titleField(other);
  const documents = below(projectPath(), '/collections/{collection}/documents', { collection: other.name });
  const query = { [field]: id, limit: SHOWN + 1, fields: title ?? '_id' };
  const { data, error, reload } = useLoad(withQuery(documents, query));
  const items = data && documentsIn(data);
  const [, project = ''] = place.value.parts;
  const all = linkTo(['p', project, 'documents', other.name], { [field]: id });
  return (
    <section>
      <h4>
        {other.name}.{field}
      </h4>
      <ErrorNote error={error} onRetry={reload} />
      {items?.length === 0 && <p class="muted">None.</p>}
      <ul class="refs">
        {items?.slice(0, SHOWN).map((found) => (
          <li key={found._id}>
            <a href={linkToDocument(other.name, found._id)} dir="auto">
              {title !== null && typeof found[title] === 'string' ? `${found[title]} · ` : ''}
              {found._id}
            </a>
          </li>
        ))}
      </ul>
      {(items?.length ?? 0) > SHOWN && <a href={all}>All of them</a>}
    </section>
  );
}

function refsOf({ fields }: Collection): { name: string; ref: string }[] {
  return fields.flatMap(({ name, ref, items }) => {
    const to = ref ?? items?.ref;
    return to === undefined ? [] : [{ name, ref: to }];
  });
}

function linkToDocument(collection: string, id: string): string {
  const [, project = ''] = place.value.parts;
  return collection === USERS
    ? linkTo(['p', project, USERS], { open: id })
    : linkTo(['p', project, 'documents', collection], { open: id });
}

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
      <Field label="Another field" value={name} onChange={setName} />
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

type HistoryRoute = '/api/projects/{projectId}/collections/{collection}/documents/{document}/history';
type Change = DataOf<'GET', HistoryRoute>['items'][number];

/** What the change log has of the document: what changed when, newest first. */
function HistoryTab({ base, collection, record }: RecordView) {
  const path = below(base, '/{document}/history', { document: record.stored?._id ?? '' });
  const first = useLoad(path);
  if (first.data?.isKept === false) {
    return (
      <div class="empty">
        <p>Changes of {collection.name} are not kept yet, so there is no history.</p>
        {mayChange.value && (
          <button
            onClick={() =>
              void attempt(async () => {
                const own = below(projectPath(), '/collections/{collection}/changes', { collection: collection.name });
                await call('PUT', own, { body: { on: true } });
                first.reload();
                return 'Changes are kept from now on';
              })
            }
          >
            Keep changes from now on
          </button>
        )}
        <p class="muted">
          <code>bsvc collection edit {collection.name} --changes on</code>
        </p>
      </div>
    );
  }
  return (
    <>
      <Page path={path} before={null} after={record.stored} isAfterPartial={false} />
      {first.data && (
        <p class="muted">
          {first.data.since
            ? `Changes of ${collection.name} are kept since ${moment(first.data.since)}.`
            : `No change of ${collection.name} is kept yet.`}
        </p>
      )}
    </>
  );
}

/** Some changes, and on demand those before them. */
function Page({
  path,
  before,
  after,
  isAfterPartial,
}: {
  path: Address<HistoryRoute>;
  before: number | null;
  /** The document after the first of them, as far as it is known. */
  after: ShownFields | null;
  isAfterPartial: boolean;
}) {
  const { data, error, reload } = useLoad(withQuery(path, { before }));
  const [isMore, setMore] = useState(false);
  if (!data) return error ? <ErrorNote error={error} onRetry={reload} /> : <p class="empty">Loading…</p>;
  const { items, next } = data;
  const states = [{ before: after, isPartial: isAfterPartial }, ...items];
  const last = states.at(-1)!;
  return (
    <>
      <ErrorNote error={error} onRetry={reload} />
      {items.length === 0 && before === null && next === null && <p class="empty">No changes recorded.</p>}
      <ol class="history">
        {items.map((item, at) => (
          <li key={`${item.at} ${at}`}>
            <p>
              <b>{titleOf(item, states[at]!.before)}</b> <time dateTime={item.at}>{moment(item.at)}</time>
            </p>
            <Differences before={item} after={states[at]!} />
          </li>
        ))}
      </ol>
      {next !== null && !isMore && <button onClick={() => setMore(true)}>Look for older changes</button>}
      {next !== null && isMore && (
        <Page path={path} before={next} after={last.before} isAfterPartial={last.isPartial} />
      )}
    </>
  );
}

interface State {
  before: ShownFields | null;
  isPartial: boolean;
}

function titleOf({ change, before }: Change, after: ShownFields | null): string {
  if (change === 'created') return 'Created';
  if (change === 'removed') return 'Deleted permanently';
  if (before && after && before.isDeleted !== after.isDeleted) {
    return after.isDeleted === true ? 'Moved to the trash' : 'Taken back from the trash';
  }
  return 'Changed';
}

function Differences({ before: { before, isPartial }, after }: { before: State; after: State }) {
  if (!before) return null;
  const rows = differencesOf(before, after);
  return (
    <>
      {rows.length > 0 && (
        <dl>
          {rows.map(({ name, from, to }) => (
            <div key={name}>
              <dt dir="auto">{name}</dt>
              <dd>
                <del dir="auto">{from}</del>
                {to !== null && (
                  <>
                    <span aria-hidden="true"> → </span>
                    <ins dir="auto">{to}</ins>
                  </>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {isPartial && <p class="hint">The document was long: only a part of it was kept.</p>}
    </>
  );
}

/** What was before, and became; null where what it became is not known. */
function differencesOf(before: ShownFields, after: State): { name: string; from: string; to: string | null }[] {
  const later = after.before;
  const names = new Set([...Object.keys(before), ...Object.keys(later ?? {})]);
  return [...names].flatMap((name) => {
    if (OF_SERVER.has(name)) return [];
    const from = writeValue(before[name]);
    if (!later || (after.isPartial && !Object.hasOwn(later, name))) return [];
    const to = writeValue(later[name]);
    return from === to ? [] : [{ name, from, to }];
  });
}
