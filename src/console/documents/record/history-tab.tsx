import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, withQuery, type Address, type DataOf } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt, ErrorNote } from '../../parts/basics.js';
import { mayChange, projectPath } from '../../session.js';
import { OF_SERVER, writeValue, type ShownFields, type RecordView } from './use-record.js';

type HistoryRoute = '/api/projects/{projectId}/collections/{collection}/documents/{document}/history';
type Change = DataOf<'GET', HistoryRoute>['items'][number];

/** What the change log has of the document: what changed when, newest first. */
export function HistoryTab({ base, collection, record }: RecordView) {
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
