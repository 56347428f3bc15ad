import type { Decimal128 } from 'bson';
import { addDecimals, closeDecimal, type Decimal, decimalOf, fitDecimal, openDecimal } from '../values/decimal.js';
import { kindOf, narrow, overflowToDouble } from '../values/number.js';
import { isInt32, numberOf, toDouble } from '../values/value.js';

/** Sums with every bit of the integers, compensated doubles, and decimals as soon as one appears. */
export class Total {
  private whole = 0;
  private big = 0n;
  private double = 0;
  private compensation = 0;
  private decimal: Decimal | null = null;
  private hasDouble = false;
  private hasLong = false;
  count = 0;

  add(value: unknown): number {
    if (typeof value === 'number' && isInt32(value)) {
      this.whole += value;
      this.count++;
      if (!Number.isSafeInteger(this.whole + 2147483648)) this.carry();
      return 0;
    }
    const kind = kindOf(value);
    if (kind === null) return 0;
    this.count++;
    if (kind === 'decimal') {
      this.decimal = fitDecimal(addDecimals(this.decimal ?? decimalOf(0), openDecimal(value as Decimal128)));
    } else if (kind === 'double') {
      this.addDouble(numberOf(value)!);
    } else {
      this.hasLong = true;
      this.big += value as bigint;
    }
    return 0;
  }

  private carry(): void {
    this.big += BigInt(this.whole);
    this.whole = 0;
  }

  /** Neumaier's summation: what a plain sum would lose is kept apart. */
  private addDouble(value: number): void {
    this.hasDouble = true;
    const sum = this.double + value;
    if (Number.isFinite(sum)) {
      this.compensation +=
        Math.abs(this.double) >= Math.abs(value) ? this.double - sum + value : value - sum + this.double;
    }
    this.double = sum;
  }

  private doubles(): number {
    return this.double + this.compensation;
  }

  asDecimal(): Decimal | null {
    if (this.decimal === null) return null;
    this.carry();
    const whole = addDecimals(this.decimal, decimalOf(this.big));
    return this.hasDouble ? addDecimals(whole, decimalOf(this.doubles(), 15)) : whole;
  }

  asNumber(): number {
    this.carry();
    return Number(this.big) + this.doubles();
  }

  result(): unknown {
    const decimal = this.asDecimal();
    if (decimal !== null) return closeDecimal(decimal);
    if (this.hasDouble) return toDouble(this.asNumber());
    this.carry();
    return narrow(this.big, this.hasLong, overflowToDouble);
  }
}
