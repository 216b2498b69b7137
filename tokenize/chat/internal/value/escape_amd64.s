//go:build !purego

#include "textflag.h"

DATA ·quotes<>+0(SB)/8, $0x2222222222222222
DATA ·quotes<>+8(SB)/8, $0x2222222222222222
GLOBL ·quotes<>(SB), RODATA|NOPTR, $16
DATA ·slashes<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA ·slashes<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c
GLOBL ·slashes<>(SB), RODATA|NOPTR, $16
DATA ·controls<>+0(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA ·controls<>+8(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL ·controls<>(SB), RODATA|NOPTR, $16

// HITS sets in out the bits of the bytes of x that are quotes, backslashes or controls.
#define HITS(x, out) \
	MOVOU    x, X2    \
	PCMPEQB  X5, X2   \
	MOVOU    x, X3    \
	PCMPEQB  X6, X3   \
	POR      X3, X2   \
	MOVOU    x, X3    \
	PMINUB   X7, X3   \
	PCMPEQB  x, X3    \
	POR      X3, X2   \
	PMOVMSKB X2, out

// func escapeBlocks(dst []byte, src string, short *[256]byte) (read, written int)
TEXT ·escapeBlocks(SB), NOSPLIT, $0-64
	MOVQ  dst_base+0(FP), DI
	MOVQ  src_base+24(FP), SI
	MOVQ  src_len+32(FP), R8
	MOVQ  short+40(FP), R9
	MOVOU ·quotes<>(SB), X5
	MOVOU ·slashes<>(SB), X6
	MOVOU ·controls<>(SB), X7
	LEAQ  -64(SI)(R8*1), R8 // the last place where a block can begin

block:
	CMPQ  SI, R8
	JGT   done
	MOVOU 0(SI), X0
	MOVOU 16(SI), X1
	MOVOU X0, 0(DI)
	MOVOU X1, 16(DI)
	HITS(X0, AX)
	HITS(X1, BX)
	SHLL  $16, BX
	ORL   BX, AX
	JZ    next

	// Of what was copied, the rest behind each hit is copied again, one byte
	// further on.
hit:
	BSFL    AX, CX
	LEAL    -1(AX), DX
	MOVBLZX (SI)(CX*1), R12
	MOVBLZX (R9)(R12*1), R12
	TESTL   R12, R12
	JZ      rare
	SHLL    $8, R12
	ORL     $0x5c, R12
	MOVOU   1(SI)(CX*1), X2
	MOVOU   17(SI)(CX*1), X3
	MOVW    R12, (DI)(CX*1)
	MOVOU   X2, 2(DI)(CX*1)
	MOVOU   X3, 18(DI)(CX*1)
	INCQ    DI
	ANDL    DX, AX
	JNZ     hit

next:
	ADDQ $32, SI
	ADDQ $32, DI
	JMP  block

rare:
	ADDQ CX, SI
	ADDQ CX, DI

done:
	SUBQ src_base+24(FP), SI
	SUBQ dst_base+0(FP), DI
	MOVQ SI, read+48(FP)
	MOVQ DI, written+56(FP)
	RET
