import { useEffect, useMemo, useState } from 'preact/hooks';
import { addressOf, prepare } from '../api.js';
import { bytes, duration, moment, number } from '../format.js';
import { pathTo, withQuery, type DataOf } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { useLoad } from '../load.js';
import { ErrorNote } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Icon } from '../parts/icon.js';
import { Empty, PageHead } from '../parts/page-head.js';
import { loadDrawing, Plot } from '../parts/plot.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, problems, projects, seesAll } from '../session.js';
import { NewProject } from '../project/project.js';

const STATUS = pathTo('/api/admin/status');
const EVERY_MS = 10_000;
const RANGES = ['1h', '24h', '30d'] as const;

type Series = DataOf<'GET', '/api/admin/series'>;
type SeriesName = keyof Series['series'];

export function Overview() {
  return (
    <>
      <PageHead title="Overview" />
      {seesAll.value ? (
        <Service />
      ) : (
        <p>Choose a project. Metrics of the whole server are visible to operators of all projects.</p>
      )}
      <Projects />
    </>
  );
}

function Service() {
  const range = RANGES.find((each) => each === place.value.query.get('range')) ?? '1h';
  const status = useLoad(STATUS, EVERY_MS);
  const series = useLoad(withQuery(pathTo('/api/admin/series'), { range }), EVERY_MS);
  const acts = useLoad(withQuery(pathTo('/api/admin/audit'), { limit: 6 }), 6 * EVERY_MS);
  const { data } = status;
  useEffect(() => void loadDrawing(), []);
  useEffect(() => {
    if (data) problems.value = data.problems;
  }, [data]);
  return (
    <>
      <ErrorNote error={status.error} onRetry={status.reload} />
      {data && data.problems.length > 0 && (
        <section class="attention" aria-labelledby="attention">
          <h2 id="attention">Attention</h2>
          <ul>
            {data.problems.map((problem) => (
              <li key={`${problem.kind} ${problem.id ?? ''}`}>
                <a href={repairOf(problem)}>{problem.text}</a>
                {problem.since !== null && <span class="muted"> since {moment(problem.since)}</span>}
              </li>
            ))}
          </ul>
        </section>
      )}
      <dl class="tiles">
        <Tile name="Requests a second" value={perSecond(series.data)} />
        <Tile name="95 % within" value={lastValue(series.data, 'p95Ms', (ms) => `${number(ms)} ms`)} />
        <Tile name="5xx answers" value={countOf(series.data, 'requests5xx')} />
        <Tile name="Jobs waiting / dead" value={data ? `${data.jobs.queued} / ${data.jobs.dead}` : '…'} />
        <Tile name="Memory" value={data ? bytes(data.memoryBytes) : '…'} />
        <Tile name="Disk free" value={data ? bytes(data.disk?.freeBytes) : '…'} />
        <Tile name="Running for" value={data ? duration(data.uptimeSeconds) : '…'} />
      </dl>
      <p class="row">
        {RANGES.map((each) => (
          <a
            key={each}
            class="chip"
            href={linkHere({ range: each })}
            {...(each === range && { 'aria-current': 'true' as const })}
          >
            {each}
          </a>
        ))}
      </p>
      <ErrorNote error={series.error} onRetry={series.reload} />
      <Plots data={series.data} />
      <h2>Latest actions</h2>
      <ErrorNote error={acts.error} onRetry={acts.reload} />
      <ul class="actions">
        {acts.data?.items.map((act) => (
          <li key={act.id}>
            <span class="muted">{moment(act.at)}</span> {act.actor} <b>{act.action}</b>{' '}
            {act.outcome !== 'done' && <span class="bad">{act.code ?? act.outcome}</span>}
          </li>
        ))}
      </ul>
      {data && (
        <p class="muted">
          bsvc {data.version}, {data.processes} {data.processes === 1 ? 'process' : 'processes'}, {data.store} store of{' '}
          {bytes(data.storedBytes)}
          {data.backup && `, last good backup ${moment(data.backup.at)}`}. Monitors ask{' '}
          <a href={addressOf('/api/health')}>/api/health</a>.
        </p>
      )}
      <Commands of={[prepare('GET', STATUS)]} />
    </>
  );
}

/** Where a problem is mended, or what it comes from can be read. */
function repairOf({ kind, project, id }: ApiSchemas['ServiceStatus']['problems'][number]): string {
  if (kind === 'webhook' && project && id) return linkTo(['p', project, 'webhooks', id]);
  if (kind === 'jobs') return linkTo(['jobs'], { state: 'dead' });
  return kind === 'backup' ? linkTo(['backups']) : linkTo(['server'], { name: 'data_dir' });
}

function Tile({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function perSecond(data: Series | null): string {
  if (!data) return '…';
  const kinds = ['requests2xx', 'requests3xx', 'requests4xx', 'requests5xx'] as const;
  const at = data.series.requests2xx.findLastIndex((value) => value !== null);
  return at < 0 ? '–' : number(kinds.reduce((sum, kind) => sum + (data.series[kind][at] ?? 0), 0));
}

/** A series of rates a second as counts. */
function countOf(data: Series | null, name: SeriesName): string {
  if (!data) return '…';
  const sum = data.series[name].reduce<number>((all, value) => all + (value ?? 0), 0);
  return number(Math.round((sum * data.stepMs) / 1000));
}

function lastValue(data: Series | null, name: SeriesName, show: (value: number) => string): string {
  if (!data) return '…';
  const last = data.series[name].findLast((value) => value !== null);
  return last === undefined || last === null ? '–' : show(last);
}

const PLOTS = [
  {
    title: 'Requests',
    unit: 'a second',
    lines: [
      ['2xx', 'good', 'requests2xx'],
      ['3xx', 'plain', 'requests3xx'],
      ['4xx', 'warn', 'requests4xx'],
      ['5xx', 'bad', 'requests5xx'],
    ],
  },
  {
    title: 'Time to answer',
    unit: 'ms',
    lines: [
      ['p50', 'good', 'p50Ms'],
      ['p95', 'warn', 'p95Ms'],
      ['p99', 'bad', 'p99Ms'],
    ],
  },
  {
    title: 'Webhook attempts',
    unit: 'a second',
    lines: [
      ['delivered', 'good', 'webhooksDelivered'],
      ['failed', 'bad', 'webhooksFailed'],
    ],
  },
  {
    title: 'Emails',
    unit: 'a second',
    lines: [
      ['sent', 'good', 'mailsSent'],
      ['failed', 'bad', 'mailsFailed'],
    ],
  },
  {
    title: 'Load',
    unit: 'requests, ms',
    lines: [
      ['in flight', 'plain', 'inFlight'],
      ['event loop late', 'warn', 'eventLoopLagMs'],
    ],
  },
  { title: 'Store', unit: 'bytes', lines: [['file', 'plain', 'storedBytes']] },
] as const;

function Plots({ data }: { data: Series | null }) {
  const plots = useMemo(
    () =>
      data &&
      PLOTS.map(({ title, unit, lines }) => ({
        title,
        unit,
        lines: lines.map(([name, colour, series]) => ({ name, colour, values: data.series[series] })),
      })),
    [data],
  );
  return (
    <div class="plots">
      {plots?.map((plot) => (
        <Plot key={plot.title} {...plot} fromMs={Date.parse(data!.from)} stepMs={data!.stepMs} />
      ))}
    </div>
  );
}

/** Of more projects each is asked about when its list is opened. */
const MAX_SHOWN_OPEN = 10;

/** What anyone with the publishable key of a project can do, with the commands that close it. */
function OpenParts({ id, isOpen }: { id: string; isOpen: boolean }) {
  const [shown, setShown] = useState(isOpen);
  return (
    <details open={shown} onToggle={({ currentTarget }) => setShown(currentTarget.open)}>
      <summary>Open to anyone with the publishable key</summary>
      {shown && <OpenList id={id} />}
    </details>
  );
}

function OpenList({ id }: { id: string }) {
  const { data, error, reload } = useLoad(pathTo('/api/projects/{projectId}/rules', { projectId: id }));
  return (
    <>
      <ErrorNote error={error} onRetry={reload} />
      <ul>
        {data?.items.map(({ kind, name, what, closes }) => (
          <li key={`${kind} ${name}`}>
            {kind === 'collection' && <b>{name}: </b>}
            {what}. <code>{closes}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

function Projects() {
  return (
    <>
      <div class="head">
        <h2>Projects</h2>
        {mayChange.value && seesAll.value && (
          <div class="acts">
            <a class="button" href={linkHere({ new: 'project' })}>
              <Icon name="plus" />
              New project
            </a>
          </div>
        )}
      </div>
      {projects.value.length === 0 && (
        <Empty title="No projects yet">
          <p>A project owns collections, users, files and keys.</p>
        </Empty>
      )}
      {place.value.query.get('new') === 'project' && mayChange.value && seesAll.value && (
        <NewProject onClose={() => goTo(linkHere({ new: null }))} />
      )}
      <ul class="cards">
        {projects.value.map(({ id, name, plan }) => (
          <li key={id}>
            <a href={linkTo(['p', id, 'documents'])}>{name}</a> <span class="muted">{plan}</span>
            <OpenParts id={id} isOpen={projects.value.length <= MAX_SHOWN_OPEN} />
          </li>
        ))}
      </ul>
    </>
  );
}
