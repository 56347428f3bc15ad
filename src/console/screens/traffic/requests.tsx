import { pathTo, withQuery } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment, number } from '../../format.js';
import { useLoad } from '../../load.js';
import { Copy } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Drawer } from '../../parts/drawer.js';
import { Filters } from '../../parts/filters.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { chosenOf, goTo, linkHere, linkTo, place } from '../../routes.js';
import { projects } from '../../session.js';

const EVERY_MS = 3_000;
const STATUSES = [
  ['2', '2xx: answered'],
  ['4', '4xx: refused'],
  ['429', '429: too many'],
  ['5', '5xx: failed'],
] as const;
const TIMES = [
  ['100', '100 ms or more'],
  ['300', '300 ms or more'],
  ['1000', '1 s or more'],
  ['3000', '3 s or more'],
] as const;
const DOCUMENT = /^\/api\/data\/([A-Za-z][\w-]*)\/([0-9a-f]{24})$/;

const toneOf = (status: number): string =>
  status >= 500 ? 'tag bad' : status >= 400 ? 'tag warn' : status >= 300 ? 'tag plain' : 'tag good';

/** What was asked of the process that answers the console, as it comes in. */
export function Requests() {
  const { query } = place.value;
  const of = (name: string): string => query.get(name) ?? '';
  const isKept = of('kept') === 'true';
  const isHeld = isKept || of('live') === 'off';
  const path = withQuery(pathTo('/api/admin/requests'), {
    kept: isKept || null,
    q: of('q'),
    status: chosenOf('status', STATUSES),
    minMs: chosenOf('minMs', TIMES),
    project: of('project'),
    limit: 200,
  });
  const list = useLoad(path, isHeld ? undefined : EVERY_MS);
  const opened = list.data?.items.find(({ requestId }) => requestId === query.get('open'));
  return (
    <>
      <PageHead title="Requests">
        {!isKept && (
          <a class="button" href={linkHere({ live: isHeld ? null : 'off' })}>
            {isHeld ? 'Go on' : 'Hold'}
          </a>
        )}
      </PageHead>
      <nav class="tabs" aria-label="Which requests">
        <a href={linkHere({ kept: null, open: null })} aria-current={isKept ? undefined : 'page'}>
          Latest
        </a>
        <a href={linkHere({ kept: 'true', open: null })} aria-current={isKept ? 'page' : undefined}>
          Failed and slow
        </a>
      </nav>
      <Filters
        fields={[
          { name: 'q', label: 'Path, id, user or network holds' },
          { name: 'status', label: 'Status', choices: STATUSES },
          { name: 'minMs', label: 'Took', choices: TIMES, unchosen: 'any time' },
          { name: 'project', label: 'Project', choices: projects.value.map(({ id, name }) => [id, name] as const) },
        ]}
      />
      <List
        label="Requests"
        of={{ ...list, loading: list.loading && list.data === null }}
        keyOf={({ requestId, at }) => requestId + at}
        empty="No request is like that."
        columns={[
          { name: 'At', show: ({ at }) => moment(at) },
          { name: 'Status', show: ({ status }) => <span class={toneOf(status)}>{status}</span> },
          {
            name: 'Request',
            show: ({ requestId, method, path: asked }) => (
              <a class="opens" href={linkHere({ open: requestId })}>
                {method} {asked}
              </a>
            ),
          },
          { name: 'Took', isNumber: true, show: ({ ms }) => `${number(ms)} ms` },
          { name: 'By', show: ({ by }) => by },
          { name: 'Network', show: ({ network }) => network },
        ]}
      />
      <Commands path={path} />
      {opened && <OneRequest request={opened} onClose={() => goTo(linkHere({ open: null }))} />}
    </>
  );
}

function OneRequest({ request, onClose }: { request: ApiSchemas['SeenRequest']; onClose: () => void }) {
  const { at, requestId, method, route, path, status, ms, project, by, user, network } = request;
  const [, collection, id] = DOCUMENT.exec(path) ?? [];
  const name = projects.value.find((each) => each.id === project)?.name ?? project;
  return (
    <Drawer title={`${method} ${path}`} onClose={onClose}>
      <dl class="pairs">
        <dt>Status</dt>
        <dd>
          <span class={toneOf(status)}>{status}</span>
        </dd>
        <dt>At</dt>
        <dd>{moment(at)}</dd>
        <dt>Took</dt>
        <dd>{number(ms)} ms</dd>
        <dt>Route</dt>
        <dd>{route === null ? 'none took it' : <code>{route}</code>}</dd>
        <dt>Request id</dt>
        <dd>
          <code>{requestId}</code> <Copy text={requestId} what="Request id" />
        </dd>
        <dt>By</dt>
        <dd>{by}</dd>
        <dt>Network</dt>
        <dd>{network}</dd>
        {project !== null && <dt>Project</dt>}
        {project !== null && (
          <dd>
            <a href={linkTo(['p', project, 'documents'])}>{name}</a>
          </dd>
        )}
        {project !== null && user !== null && <dt>User</dt>}
        {project !== null && user !== null && (
          <dd>
            <a href={linkTo(['p', project, 'users'], { open: user })}>{user}</a>
          </dd>
        )}
        {project !== null && collection !== undefined && id !== undefined && <dt>Document</dt>}
        {project !== null && collection !== undefined && id !== undefined && (
          <dd>
            <a href={linkTo(['p', project, 'documents', collection], { open: id })}>
              {collection} {id}
            </a>
          </dd>
        )}
      </dl>
      <p class="muted">The server’s log has its line by the request id.</p>
    </Drawer>
  );
}
