import { call } from '../../api.js';
import { pathTo, withQuery } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Filters } from '../../parts/filters.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { chosenOf, place } from '../../routes.js';
import { mayChange } from '../../session.js';

type Job = ApiSchemas['Job'];

const STATES = (['queued', 'running', 'dead', 'done'] as const).map((state) => [state, state] as const);

const retryOf = (jobId: string) => pathTo('/api/admin/jobs/{jobId}/retry', { jobId });
const mayRunNow = ({ state }: Job): boolean => state === 'dead' || state === 'queued';

export function Jobs() {
  const { query } = place.value;
  const state = chosenOf('state', STATES) ?? '';
  const name = query.get('name') ?? '';
  const path = withQuery(pathTo('/api/admin/jobs'), { state, name });
  const list = useLoad(path);
  const { data, reload } = list;
  const retry = (id: string): Promise<void> =>
    attempt(async () => {
      await call('POST', retryOf(id));
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
          path: retryOf(again.id),
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
