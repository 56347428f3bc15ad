import { prepare } from '../api.js';
import { pathTo, withQuery } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { act } from '../parts/basics.js';
import { CrudScreen } from '../parts/crud-screen.js';
import { chosenOf, place } from '../routes.js';
import { mayChange } from '../session.js';

type Job = ApiSchemas['Job'];

const STATES = (['queued', 'running', 'dead', 'done'] as const).map((state) => [state, state] as const);

const retryOf = ({ id }: Job) => prepare('POST', pathTo('/api/admin/jobs/{jobId}/retry', { jobId: id }));
const mayRunNow = ({ state }: Job): boolean => state === 'dead' || state === 'queued';

export function Jobs() {
  const state = chosenOf('state', STATES) ?? '';
  const list = useLoad(withQuery(pathTo('/api/admin/jobs'), { state, name: place.value.query.get('name') }));
  const again = list.data?.items.find(mayRunNow);
  return (
    <CrudScreen
      title="Jobs"
      filters={[
        { name: 'name', label: 'Name' },
        { name: 'state', label: 'State', choices: STATES, unchosen: 'not done' },
      ]}
      list={list}
      more={again ? [retryOf(again)] : []}
      keyOf={({ id }) => id}
      empty="No jobs."
      columns={[
        { name: 'Name', show: (job) => <b>{job.name}</b> },
        { name: 'State', show: (job) => <span class={job.state === 'dead' ? 'bad' : ''}>{job.state}</span> },
        { name: 'Attempts', kind: 'number', show: (job) => job.attempts },
        { name: state === 'done' ? 'Ran at' : 'Runs at', show: (job) => moment(job.runAt) },
        { name: 'Error', show: (job) => job.error ?? '' },
        {
          name: 'Again',
          show: (job) =>
            mayChange.value && mayRunNow(job) ? (
              <button class="small opens" onClick={() => void act(retryOf(job), 'The job is due')}>
                Run now
              </button>
            ) : null,
        },
      ]}
    />
  );
}
