import { api, queryOf } from '../api.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, say, tellRefusal, Trouble } from '../parts/basics.js';
import { Filters } from '../parts/filters.js';
import { Table } from '../parts/table.js';
import { place } from '../routes.js';
import { mayChange } from '../session.js';

interface Job {
  id: string;
  name: string;
  state: string;
  attempts: number;
  runAt: string;
  error: string | null;
}

const STATES = ['queued', 'running', 'dead', 'done'].map((state) => [state, state] as const);

export function Jobs() {
  const { query } = place.value;
  const state = query.get('state') ?? '';
  const name = query.get('name') ?? '';
  const path = `/api/admin/jobs${queryOf({ state, name })}`;
  const { data, error, loading, reload } = useLoad<{ items: Job[] }>(path);
  const retry = async (id: string): Promise<void> => {
    try {
      await api('POST', `/api/admin/jobs/${id}/retry`);
      say('The job is due');
      reload();
    } catch (refusal) {
      tellRefusal(refusal);
    }
  };
  return (
    <>
      <h1>Jobs</h1>
      <Filters
        fields={[
          { name: 'name', label: 'Name' },
          { name: 'state', label: 'State', choices: STATES },
        ]}
      />
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Jobs"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={({ id }) => id}
        empty="No jobs."
        columns={[
          { name: 'Name', show: (job) => <b>{job.name}</b> },
          { name: 'State', show: (job) => <span class={job.state === 'dead' ? 'bad' : ''}>{job.state}</span> },
          { name: 'Tries', isNumber: true, show: (job) => job.attempts },
          { name: 'Runs at', show: (job) => moment(job.runAt) },
          { name: 'Error', show: (job) => job.error ?? '' },
          {
            name: 'Again',
            show: (job) =>
              mayChange.value && (job.state === 'dead' || job.state === 'queued') ? (
                <button class="small opens" onClick={() => void retry(job.id)}>
                  Run now
                </button>
              ) : null,
          },
        ]}
      />
      <Commands cli={`bsvc jobs list${state && ` --state ${state}`}${name && ` --name ${name}`}`} path={path} />
    </>
  );
}
