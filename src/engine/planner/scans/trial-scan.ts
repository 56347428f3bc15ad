import type { Plan } from '../plan.js';
import { IdSet } from './id-set.js';
import type { Scan, VisitRow } from './scan.js';

/**
 * Reads a plan that is expected to end early; when it has not done so after a number of entries, another one with the
 * same order goes on, from its beginning and without the documents that were handed over.
 */
export class TrialScan implements Scan {
  lastRead = 0;
  private turned = false;
  private scan: Scan;
  private before = { keys: 0, documents: 0 };
  private readonly handed = new IdSet();

  constructor(
    readonly plan: Plan,
    first: Scan,
    private readonly most: number,
    private readonly idOf: (bytes: Buffer) => Buffer,
    private readonly openOther: () => Scan,
  ) {
    this.scan = first;
  }

  get finished(): boolean {
    return this.scan.finished;
  }

  get keysExamined(): number {
    return this.before.keys + this.scan.keysExamined;
  }

  get documentsExamined(): number {
    return this.before.documents + this.scan.documentsExamined;
  }

  readChunk(visit: VisitRow, most?: number): boolean {
    const { scan, handed } = this;
    const matches = (bytes: Buffer, adds: boolean): boolean => {
      const id = this.idOf(bytes);
      return handed.meet(id, 0, id.length, adds);
    };
    if (this.turned) {
      const stopped = scan.readChunk((bytes, doc) => !matches(bytes, false) && visit(bytes, doc), most);
      this.lastRead = scan.lastRead;
      return stopped;
    }
    const left = Math.max(this.most - scan.keysExamined, 1);
    const stopped = scan.readChunk(
      (bytes, doc) => {
        matches(bytes, true);
        return visit(bytes, doc);
      },
      Math.min(left, most ?? LARGEST_STEP),
    );
    this.lastRead = scan.lastRead;
    if (!stopped && !scan.finished && scan.keysExamined >= this.most) this.turn();
    return stopped;
  }

  dropAhead(): void {
    this.scan.dropAhead();
  }

  private turn(): void {
    const { keysExamined, documentsExamined } = this.scan;
    this.before = { keys: keysExamined, documents: documentsExamined };
    this.turned = true;
    this.scan = this.openOther();
  }
}

const LARGEST_STEP = 128;
