import { pathTo, withQuery } from '../api-paths.js';
import { cell, moment } from '../format.js';
import { useLoad } from '../load.js';
import { CrudScreen } from '../parts/crud-screen.js';
import { place } from '../routes.js';
import { projects, seesAll } from '../session.js';

const PAGE = 50;

export function Audit() {
  const { query } = place.value;
  const of = (name: string): string => query.get(name) ?? '';
  const project = of('project') || (seesAll.value ? '' : (projects.value[0]?.id ?? ''));
  const path = withQuery(pathTo('/api/admin/audit'), {
    limit: PAGE,
    project,
    actor: of('actor'),
    action: of('action'),
    since: of('since'),
    before: of('before'),
  });
  const list = useLoad(seesAll.value || project !== '' ? path : null);
  const { data } = list;
  return (
    <CrudScreen
      title="Audit"
      label="Audit entries"
      filters={[
        { name: 'actor', label: 'Who' },
        { name: 'action', label: 'Action' },
        { name: 'since', label: 'Since (24h, 7d)' },
        { name: 'project', label: 'Project', choices: projects.value.map(({ id, name }) => [id, name] as const) },
      ]}
      list={list}
      before={data && data.items.length === PAGE ? data.items.at(-1)!.id : null}
      keyOf={({ id }) => id}
      empty="No entries."
      columns={[
        { name: 'At', show: ({ at }) => moment(at) },
        { name: 'Who', show: ({ actor }) => actor },
        { name: 'What', show: ({ action }) => <b>{action}</b> },
        { name: 'With', show: ({ input }) => <code title={cell(input, 2000)}>{cell(input, 40)}</code> },
        {
          name: 'Outcome',
          show: ({ outcome, code }) => <span class={outcome === 'failed' ? 'bad' : ''}>{code ?? outcome}</span>,
        },
      ]}
    />
  );
}
