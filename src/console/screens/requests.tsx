import { pathTo, withQuery } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Copy } from '../parts/basics.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Drawer } from '../parts/drawer.js';
import { Pairs, Tabs } from '../parts/page-head.js';
import { chosenOf, linkHere, linkTo, place } from '../routes.js';
import { projects } from '../session.js';

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
  return (
    <CrudScreen
      title="Requests"
      buttons={
        !isKept && (
          <a class="button" href={linkHere({ live: isHeld ? null : 'off' })}>
            {isHeld ? 'Go on' : 'Hold'}
          </a>
        )
      }
      filters={[
        { name: 'q', label: 'Path, ID, user or network contains' },
        { name: 'status', label: 'Status', choices: STATUSES },
        { name: 'minMs', label: 'Took', choices: TIMES, unchosen: 'any time' },
        { name: 'project', label: 'Project', choices: projects.value.map(({ id, name }) => [id, name] as const) },
      ]}
      list={{ ...list, loading: list.loading && list.data === null }}
      keyOf={({ requestId }) => requestId}
      empty="No requests match your filter."
      columns={[
        { name: 'At', show: ({ at }) => moment(at) },
        { name: 'Status', show: ({ status }) => <span class={toneOf(status)}>{status}</span> },
        { name: 'Request', show: ({ requestId, method, path: asked }) => opens(requestId, `${method} ${asked}`) },
        { name: 'Took', kind: 'number', show: ({ ms }) => `${number(ms)} ms` },
        { name: 'By', show: ({ by }) => by },
        { name: 'Network', show: ({ network }) => network },
      ]}
      view={(request, close) => <OneRequest request={request} onClose={close} />}
    >
      <Tabs
        label="Which requests"
        current={String(isKept)}
        tabs={[
          ['false', 'Latest', linkHere({ kept: null, open: null })],
          ['true', 'Failed and slow', linkHere({ kept: 'true', open: null })],
        ]}
      />
    </CrudScreen>
  );
}

function OneRequest({ request, onClose }: { request: ApiSchemas['SeenRequest']; onClose: () => void }) {
  const { at, requestId, method, route, path, status, ms, project, by, user, network } = request;
  const [, collection, id] = DOCUMENT.exec(path) ?? [];
  const name = projects.value.find((each) => each.id === project)?.name ?? project;
  return (
    <Drawer title={`${method} ${path}`} onClose={onClose}>
      <Pairs
        of={{
          Status: <span class={toneOf(status)}>{status}</span>,
          At: moment(at),
          Took: `${number(ms)} ms`,
          Route: route === null ? 'none took it' : <code>{route}</code>,
          'Request id': (
            <>
              <code>{requestId}</code> <Copy text={requestId} what="Request id" />
            </>
          ),
          By: by,
          Network: network,
          Project: project !== null && <a href={linkTo(['p', project, 'documents'])}>{name}</a>,
          User: project !== null && user !== null && (
            <a href={linkTo(['p', project, 'users'], { open: user })}>{user}</a>
          ),
          Document: project !== null && collection !== undefined && id !== undefined && (
            <a href={linkTo(['p', project, 'documents', collection], { open: id })}>
              {collection} {id}
            </a>
          ),
        }}
      />
      <p class="muted">The server’s log has its line by the request id.</p>
    </Drawer>
  );
}
