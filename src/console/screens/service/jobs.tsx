import { api, queryOf } from '../../api.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Filters } from '../../parts/filters.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { place } from '../../routes.js';
import { mayChange } from '../../session.js';

interface Job {
  id: string;
  name: string;
  state: string;
  attempts: number;
  runAt: string;
  error: string | null;
}

const STATES = ['queued', 'running', 'dead', 'done'].map((state) => [state, state] as const);

const mayRunNow = ({ state }: Job): boolean => state === 'dead' || state === 'queued';

export function Jobs() {
  const { query } = place.value;
  const state = query.get('state') ?? '';
  const name = query.get('name') ?? '';
  const path = `/api/admin/jobs${queryOf({ state, name })}`;
  const list = useLoad<{ items: Job[] }>(path);
  const { data, reload } = list;
  const retry = (id: string): Promise<void> =>
    attempt(async () => {
      await api('POST', `/api/admin/jobs/${id}/retry`);
      reload();
      return 'The job is due';
    });
  const again = data?.items.find(mayRunNow);
  const retries = again
    ? [
        {
          name: `Run now, such as ${again.name}`,
          cli: `bsvc jobs retry ${again.id}`,
          method: 'POST',
          path: `/api/admin/jobs/${again.id}/retry`,
        },
      ]
    : [];
  return (
    <>
      <PageHead title="Jobs" />
      <Filters
        fields={[
          { name: 'name', label: 'Name' },
          { name: 'state', label: 'State', choices: STATES, unchosen: 'not done' },
        ]}
      />
      <List
        label="Jobs"
        of={list}
        keyOf={({ id }) => id}
        empty="No jobs."
        columns={[
          { name: 'Name', show: (job) => <b>{job.name}</b> },
          { name: 'State', show: (job) => <span class={job.state === 'dead' ? 'bad' : ''}>{job.state}</span> },
          { name: 'Attempts', isNumber: true, show: (job) => job.attempts },
          { name: state === 'done' ? 'Ran at' : 'Runs at', show: (job) => moment(job.runAt) },
          { name: 'Error', show: (job) => job.error ?? '' },
          {
            name: 'Again',
            show: (job) =>
              mayChange.value && mayRunNow(job) ? (
                <button class="small opens" onClick={() => void retry(job.id)}>
                  Run now
                </button>
              ) : null,
          },
        ]}
      />
      <Commands
        cli={`bsvc jobs list${state && ` --state ${state}`}${name && ` --name ${name}`}`}
        path={path}
        more={mayChange.value ? retries : []}
      />
    </>
  );
}
